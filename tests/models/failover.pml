/*
 * Failover, and a new lineage: checkpoints and lineages while another database takes over.
 *
 * Which process is which code (service/evidence/checkpoints):
 *   Checkpointer  Checkpoints.make (signing.py), StoredCheckpoints.store, PublishedHistory
 *   Late          a process that has stored a checkpoint, and publishes it whenever it likes
 *   Operator      `audit lineage` without --force: find_divergence and begin_lineage (divergence.py)
 *   Writer        whoever appends
 *   Disasters     put an earlier state of the whole database in place of the present one: a replica
 *                 that lagged, or a restore
 * A step is a transaction or a call of the archive. Processes go on with what they know from before;
 * what they do next meets the other database. One may die between storing and publishing.
 *
 * An event is a number that is never used twice; those below FIRST_PLAIN begin the lineage of that
 * number. A root is the whole prefix of the log, in octal digits: what hashes are trusted for.
 *
 * With SYNCHRONOUS, storing a checkpoint waits for the replica that takes over, as the service tells
 * PostgreSQL to. Two processes make checkpoints then. With LATE, the replica may lag, and one process
 * publishes late while another one goes on; one disaster, so that the states can be counted. With
 * neither, the replica may lag or be a backup, twice.
 *
 * What a process does between storing and publishing was a fault of the service once, and so were
 * these; each has a mutant here, and a test in tests/evidence/test_failovers.py:
 *   - Two processes and a replica that lags: one publishes from the old database after the other one
 *     has asked the archive. The link to the next checkpoint is written once, so one of them is
 *     refused, and then meets the database that is there (LINK_WRITTEN_TWICE).
 *   - A late publication of an origin that another lineage follows by now: the origin was closed
 *     before (ORIGIN_NOT_CLOSED). Of an origin that the log does not name: it is published, the log
 *     counts as forked as if it had been found before, and `audit lineage` follows it.
 *   - A second failover inside `audit lineage`, between comparing and appending: the log has to end
 *     as the one that was compared (BEGUN_BESIDE_ANOTHER_LOG).
 *   - A lineage's first checkpoint that does not cover the event that begins it, as a long log is
 *     signed in parts. That is no fault by itself: what it says of the log holds, the next part
 *     follows at once, and an export has a checkpoint of all. But if that event is lost then,
 *     nothing that was published is, and the log still cannot go on under an origin that it does not
 *     name: `audit lineage` begins another one without being forced (UNKNOWN_ORIGIN_TAKEN_FOR_KEPT).
 *
 * Left out: keys and signatures (nobody forges), altered events, leaf files, lost archives.
 *
 * Invariants, each the name of an assertion:
 *   origin_is_consistent    checkpoints of one origin, archived or about to be, are of one log
 *   difference_is_declared  whoever publishes a checkpoint that an archived one of another origin
 *                           contradicts has a lineage in the log that sets the archived one aside
 *   lineage_is_sound        no lineage is begun that a verifier refuses
 *   shared_size_is_true     the log has what a lineage says that it shares with the one before
 *   loss_is_no_alteration   `audit lineage` never takes lost events for altered ones
 *   loss_can_be_declared    nor refuses a log that cannot go on under its origin
 */

#define SIZE_MAX 4
#define PLAIN 2
#ifdef SYNCHRONOUS
#define MAKERS 2
#define DISASTERS 1
#define ORIGINS 2
#define MANY_CHECKPOINTS false
#else
#define MAKERS 1
#ifdef LATE
#define ORIGINS 2
#define DISASTERS 1
#define MANY_CHECKPOINTS true
#else
#define ORIGINS 3
#define DISASTERS 2
#define MANY_CHECKPOINTS (start == 1)
#endif
#endif
#define FIRST_PLAIN (ORIGINS + 1)
#define PLAIN_LAST (ORIGINS + PLAIN)
#define CLOSED 255

typedef Database {
    byte size;                      /* events that have committed */
    byte numbered;                  /* and how many of them have positions */
    byte event[SIZE_MAX + 1];
    byte stored_size[ORIGINS + 1];  /* the newest stored checkpoint of each origin */
    short stored_root[ORIGINS + 1]
};
Database db;
Database replica;

/* What each lineage says, which is in its event. */
byte follows[ORIGINS + 1];
byte followed_size[ORIGINS + 1];
byte shared_size[ORIGINS + 1];
byte origins;
byte plain = FIRST_PLAIN - 1;

/* Archived roots by origin and size, and the links to the next size; 0: none. */
typedef Sizes {
    short root[SIZE_MAX + 1];
    byte next[SIZE_MAX + 1]
};
Sizes archive[ORIGINS + 1];

byte disasters = DISASTERS;

#ifdef LATE
/* What a process has stored and not published yet, while another one goes on; 0: nothing. */
byte late_origin, late_size, late_after;
short late_root;
bool can_be_late = true;
byte late_published;                /* the origin of what was published late */
#endif

bool origin_is_consistent, difference_is_declared, lineage_is_sound;
bool loss_is_no_alteration, shared_size_is_true, loss_can_be_declared;

inline copy(target, source)
{
    target.size = source.size;
    target.numbered = source.numbered;
    for (i : 1 .. SIZE_MAX) {
        target.event[i] = source.event[i]
    }
    for (i : 1 .. ORIGINS) {
        target.stored_size[i] = source.stored_size[i];
        target.stored_root[i] = source.stored_root[i]
    }
    i = 0
}

inline clear(target)
{
    target.size = 0;
    target.numbered = 0;
    for (i : 1 .. SIZE_MAX) {
        target.event[i] = 0
    }
    for (i : 1 .. ORIGINS) {
        target.stored_size[i] = 0;
        target.stored_root[i] = 0
    }
    i = 0
}

/* The root of the log's first events. */
inline root_of_log(result, up_to)
{
    result = 0;
    for (k : 1 .. up_to) {
        result = result * 8 + db.event[k]
    }
    k = 0
}

#define PREFIX(root, size, shorter) ((root) >> (3 * ((size) - (shorter))))
#define AGREE(a, a_size, b, b_size) \
    ((a_size) <= (b_size) -> PREFIX(b, b_size, a_size) == (a) : PREFIX(a, a_size, b_size) == (b))

/* The present lineage, and the origins that the log names, a bit each. */
inline read_lineages()
{
    origin = 0;
    known = 0;
    for (i : 1 .. db.size) {
        if
        :: db.event[i] < FIRST_PLAIN ->
            origin = db.event[i];
            known = known | (1 << origin) | (1 << follows[origin])
        :: else
        fi
    }
    i = 0
}

/* The newest origin that has archived checkpoints and is not named by the log; 0: none. */
inline newest_unknown(result)
{
    result = 0;
    for (i : 1 .. ORIGINS) {
        for (j : 1 .. SIZE_MAX) {
            if
            :: archive[i].root[j] != 0 && !(known & (1 << i)) -> result = i
            :: else
            fi
        }
    }
    i = 0;
    j = 0
}

/* Lineages.sets_aside, for the lineages among the events of a root. */
inline sets_aside(result, of_root, of_size, old, old_size)
{
    found = false;
    reach = 255;
    most = 0;
    for (k : 1 .. of_size) {
        at = PREFIX(of_root, of_size, k) & 7;
        if
        :: at >= FIRST_PLAIN
        :: else ->
            if
            :: follows[at] == old || found ->
                found = true;
                reach = (shared_size[at] < reach -> shared_size[at] : reach)
            :: else
            fi;
            if
            :: at == old -> found = true
            :: else
            fi;
            if
            :: follows[at] == old && followed_size[at] > most -> most = followed_size[at]
            :: else
            fi
        fi
    }
    result = found && old_size > reach && (most == 0 || old_size <= most);
    k = 0;
    at = 0;
    most = 0;
    reach = 0;
    found = false
}

/* Whether the present log names an origin. */
inline names(result, o)
{
    result = false;
    for (k : 1 .. db.size) {
        at = db.event[k];
        result = result || (at < FIRST_PLAIN && (at == o || follows[at] == o))
    }
    k = 0;
    at = 0
}

/*
 * PublishedHistory.put: the link from the size before is written once. `basis` is the log that was
 * there when the checkpoint was stored. A process that took its time publishes what may be of
 * another database: then `basis` is the present log, which declares a difference, in either
 * direction, or does not name the origin and counts as forked until it does.
 */
inline put(o, s, r, after, is_late)
{
    if
#ifndef LINK_WRITTEN_TWICE
    :: archive[o].next[after] != 0
#endif
    :: else ->
        origin_is_consistent = true;
        difference_is_declared = true;
        for (i : 1 .. ORIGINS) {
            for (j : 1 .. SIZE_MAX) {
                if
                :: archive[i].root[j] == 0 || AGREE(archive[i].root[j], j, r, s)
                :: else ->
                    if
                    :: i == o -> origin_is_consistent = false
                    :: else ->
                        sets_aside(is_aside, basis, basis_size, i, j);
#ifdef LATE
                        if
                        :: is_late && !is_aside ->
                            sets_aside(is_aside, basis, basis_size, o, s);
                            if
                            :: !is_aside -> names(found, o); is_aside = !found
                            :: else
                            fi
                        :: !is_late && !is_aside && i == late_published ->
                            root_of_log(basis, db.size);
                            basis_size = db.size;
                            sets_aside(is_aside, basis, basis_size, i, j);
                            if
                            :: !is_aside -> names(found, i); is_aside = !found
                            :: else
                            fi
                        :: else
                        fi;
                        found = false;
#endif
                        difference_is_declared = difference_is_declared && is_aside
                    fi
                fi
            }
        }
        i = 0;
        j = 0;
        is_aside = false;
        assert(origin_is_consistent);
        assert(difference_is_declared);
        archive[o].root[s] = (archive[o].root[s] == 0 -> r : archive[o].root[s]);
#ifdef LATE
        late_published = (is_late -> o : late_published);
#endif
        archive[o].next[after] = s
    fi
}

/* PublishedHistory.hold: earlier lineages bind the log, where nothing sets them aside. */
inline hold(result)
{
    result = true;
    root_of_log(grown, db.numbered);
    root_of_log(all, db.size);
    for (i : 1 .. ORIGINS) {
        for (j : 1 .. SIZE_MAX) {
            if
            :: i != origin && (known & (1 << i)) && archive[i].root[j] != 0 ->
                sets_aside(is_aside, all, db.size, i, j);
                if
                :: is_aside
                :: else ->
                    result = result && j <= db.numbered;
                    if
                    :: result -> result = PREFIX(grown, db.numbered, j) == archive[i].root[j]
                    :: else
                    fi
                fi
            :: else
            fi
        }
    }
    i = 0;
    j = 0;
    all = 0;
    grown = 0;
    is_aside = false
}

inline begin(o, previous, previous_size, common)
{
    origins++;
    o = origins;
    follows[o] = previous;
    followed_size[o] = previous_size;
    shared_size[o] = common
}

inline append(which)
{
    db.size++;
    db.event[db.size] = which
}

active proctype Writer()
{
    do
    :: atomic { plain < PLAIN_LAST && db.size < SIZE_MAX -> plain++; append(plain) }
    :: plain == PLAIN_LAST -> break
    od
}

/* The replica receives the log of what commits, in order; how far it is behind is open. */
active proctype Disasters()
{
    byte i;

end_calm:
    do
    :: d_step { disasters > 0 -> copy(replica, db) }
    :: d_step {
        disasters > 0;
        disasters--;
        copy(db, replica);
        if
        :: disasters == 0 -> clear(replica)
        :: else
        fi
       }
    od
}

/* Checkpoints.make, again and again. */
active [MAKERS] proctype Checkpointer()
{
    byte origin, known, unknown, start, end, first, i, j, k, at, reach, most;
    bool found, is_aside, holds;
    byte basis_size;
    short last_root, grown, all, basis;

end_rest:
    do
    :: atomic {
        unknown = 0; start = 0; end = 0; first = 0;
        last_root = 0; grown = 0; all = 0; holds = false; at = 0;
        basis = 0; basis_size = 0;
        db.numbered = db.size;          /* number_committed */
        d_step { read_lineages() }
       }
       if
       :: origin == 0 ->
            atomic {                    /* PublishedHistory.known([]) */
                d_step { newest_unknown(unknown) };
                if
                :: unknown != 0 -> goto end_rest
                :: else
                fi
            }
            atomic {                    /* begin_first: one transaction */
                d_step { read_lineages() };
                if
                :: origin == 0 ->
                    origins < ORIGINS && db.size < SIZE_MAX;
                    begin(at, 0, 0, 0);
                    append(at)
                :: else
                fi
            }
       :: else
       fi;
step:
       atomic {                         /* lineages, and StoredCheckpoints.last */
        d_step { read_lineages() };
        if
        :: origin == 0 -> goto end_rest /* a database without any: begin anew */
        :: else
        fi;
        start = db.stored_size[origin];
        last_root = db.stored_root[origin]
       }
       atomic {                         /* PublishedHistory.known, and hold */
#ifndef UNKNOWN_ORIGINS_PASSED_OVER
        d_step { newest_unknown(unknown) };
#endif
        if
        :: unknown != 0 ->
            d_step { read_lineages() };
            d_step { newest_unknown(unknown) };
            if
            :: unknown != 0 -> goto end_rest
            :: else
            fi
        :: else
        fi;
        if
        :: start == 0 ->
#ifdef EARLIER_LINEAGES_NOT_HELD
            holds = true;
#else
            d_step { hold(holds) };
#endif
            if
            :: holds -> holds = false
            :: else -> goto end_rest
            fi
        :: else
        fi;
        known = 0
       }
       atomic {                         /* Checkpoints._ahead */
        if
        :: start == 0
        :: start != 0 && archive[origin].root[start] == 0 ->
            end = db.stored_size[origin];
            grown = db.stored_root[origin];
            d_step { root_of_log(basis, db.size); basis_size = db.size };
            if
            :: end != 0 ->              /* _publish_missing */
                d_step {
                    first = 0;
                    for (i : 1 .. end - 1) {
                        first = (archive[origin].root[i] != 0 -> i : first)
                    }
                    i = 0;
                    holds = first == 0 ||
                        archive[origin].root[first] == PREFIX(grown, end, first);
                    if
                    :: holds -> put(origin, end, grown, first, false)
                    :: else
                    fi;
                    first = 0;
                    holds = archive[origin].root[end] != 0
                };
                if
                :: holds -> holds = false
                :: else -> goto end_rest
                fi
            :: else
            fi
        :: start != 0 && archive[origin].root[start] != 0 ->
            if
            :: archive[origin].root[start] != last_root -> goto end_rest
            :: else
            fi
        fi;
        d_step {
            first = 0;
            for (i : start + 1 .. SIZE_MAX) {
                if
#ifndef ARCHIVE_NOT_ASKED_AHEAD
                :: archive[origin].root[i] != 0 ->
                    first = (first == 0 -> i : first)
#endif
                :: else
                fi
            }
            i = 0;
            end = 0;
            grown = 0;
            basis = 0;
            basis_size = 0
        }
       }
       atomic {                         /* read_part, and check_head */
        if
        :: db.numbered < start || first > db.numbered -> goto end_rest
        :: else
        fi;
        end = (first != 0 -> first : db.numbered);
        do                              /* a long log's first checkpoint may be of a part */
        :: start == 0 && first == 0 && end > 1 -> end--
        :: break
        od;
        grown = last_root;
        for (i : start + 1 .. end) {
            grown = grown * 8 + db.event[i]
        }
        i = 0;
        d_step { root_of_log(all, db.numbered) };
        if
        :: end == db.numbered && all != grown -> goto end_rest
        :: else -> all = 0
        fi;
        if                          /* nothing is new, or the last one is recent enough */
        :: end == start || start != 0 && !MANY_CHECKPOINTS -> goto end_rest
        :: else
        fi;
        if
        :: first != 0 && archive[origin].root[end] != grown -> goto end_rest
        :: else
        fi;
        first = 0;
        last_root = 0
       }
       atomic {                         /* StoredCheckpoints.store: one transaction */
        at = origin;
        d_step { read_lineages() };
        known = 0;
        if
#ifndef LINEAGE_NOT_READ_AGAIN
        :: origin != at -> goto late
#endif
#ifndef STORED_BESIDE_ANOTHER_LOG
        :: db.numbered < end || db.event[end] != (grown & 7) -> goto late
#endif
#ifndef STORED_AFTER_ANOTHER_ONE
        :: db.stored_size[origin] != start -> goto late
#endif
        :: (
#ifndef LINEAGE_NOT_READ_AGAIN
            origin == at &&
#endif
#ifndef STORED_BESIDE_ANOTHER_LOG
            db.numbered >= end && db.event[end] == (grown & 7) &&
#endif
#ifndef STORED_AFTER_ANOTHER_ONE
            db.stored_size[origin] == start &&
#endif
            true)
        fi;
        origin = at;
        at = 0;
        db.stored_size[origin] = end;
        db.stored_root[origin] = grown;
        d_step { root_of_log(basis, db.size); basis_size = db.size };
#ifdef SYNCHRONOUS
#ifndef STORING_NOT_AWAITED
        d_step { copy(replica, db) }
#endif
#endif
       }
       if
       :: d_step { put(origin, end, grown, start, false) }
#ifdef LATE
       :: d_step {                      /* it takes its time, and another process goes on */
            can_be_late -> can_be_late = false;
            late_origin = origin;
            late_size = end;
            late_root = grown;
            late_after = start
          }
#endif
       :: true                          /* the process died */
       fi;
       goto end_rest;
late:
       atomic { at = 0; end = 0; grown = 0; db.numbered = db.size };
       goto step
    od
}

#ifdef LATE
/* The process that took its time. */
active proctype Late()
{
    byte basis_size, i, j, k, at, reach, most;
    bool found, is_aside;
    short basis;

end_rest:
    d_step {
        late_origin != 0;
        root_of_log(basis, db.size);
        basis_size = db.size;
        put(late_origin, late_size, late_root, late_after, true);
        late_origin = 0;
        late_size = 0;
        late_root = 0;
        late_after = 0;
        basis = 0;
        basis_size = 0
    }
}
#endif

/* What find_divergence finds: the past's last checkpoint, and how much of it the log has. */
inline find_divergence()
{
    d_step {
        db.numbered = db.size;
        read_lineages();
        newest_unknown(past);
        is_over = past != 0;
        past = (past == 0 -> origin : past);
        past_size = 0;
        for (i : 1 .. SIZE_MAX) {
            if
            :: archive[past].root[i] != 0 -> past_size = i
            :: else
            fi
        }
        i = 0;
        is_over = is_over || archive[past].next[past_size] == CLOSED;
        shared = 0;
        size = db.numbered;
        leaf = (size == 0 -> 0 : db.event[size]);
        root_of_log(grown, size);
        for (j : 1 .. SIZE_MAX) {
            if
            :: j <= size && j <= past_size ->
                if
#ifdef SHARED_SIZE_OVERSTATED
                :: j < past_size -> shared = j
#endif
                :: PREFIX(grown, size, j) ==
                        PREFIX(archive[past].root[past_size], past_size, j) ->
                    shared = j
                :: else
                fi
            :: else
            fi
        }
        j = 0;
        grown = 0
    }
}

inline forget()
{
    origin = 0; known = 0; past = 0; past_size = 0; shared = 0; size = 0; leaf = 0; at = 0;
    is_over = false
}

#ifndef SYNCHRONOUS
/* `claim-ledger audit lineage`, for which nothing is ever lost if it is synchronous. */
active proctype Operator()
{
    byte origin, known, past, past_size, shared, size, leaf, i, j, k, at;
    bool is_over;
    short grown;

end_rest:
    do
    :: atomic {
       origins > 0 && origins < ORIGINS;
       find_divergence();
       if
#ifdef UNKNOWN_ORIGIN_TAKEN_FOR_KEPT
       :: past_size == 0 || shared == past_size ->
#else
       :: past_size == 0 || shared == past_size && !is_over ->
#endif
            loss_can_be_declared = past_size == 0 || !is_over;
            assert(loss_can_be_declared);
            forget();
            goto end_rest
       :: else
       fi
       }
       atomic {                         /* _refuse_altered */
        at = db.stored_size[origin];
        if
        :: size >= past_size && at != 0 ->
            d_step { root_of_log(grown, at) };
            loss_is_no_alteration = grown == db.stored_root[origin];
            assert(loss_is_no_alteration);
            grown = 0
        :: else
        fi;
        at = 0;
                                    /* restore_published */
        d_step { read_lineages() };
        for (j : 1 .. SIZE_MAX) {
            if
            :: j <= shared && j <= db.numbered && j > db.stored_size[origin] &&
                    archive[origin].root[j] != 0 ->
                root_of_log(grown, j);
                if
                :: grown == archive[origin].root[j] ->
                    db.stored_size[origin] = j;
                    db.stored_root[origin] = grown
                :: else
                fi
            :: else
            fi
        }
        j = 0;
        grown = 0
       }
again:
#ifndef ORIGIN_NOT_CLOSED
       atomic {                         /* PublishedHistory.last, and close */
        if
        :: archive[past].next[past_size] == 0 -> archive[past].next[past_size] = CLOSED
        :: archive[past].next[past_size] == CLOSED
        :: else -> goto rest
        fi
       }
#endif
       atomic {                         /* _begin: one transaction, under the lock of storing */
        at = origin;
        d_step { read_lineages() };
        if
        :: origin != at -> goto rest
#ifndef BEGUN_BESIDE_ANOTHER_LOG
        :: origin == at && size != 0 && (db.numbered < size || db.event[size] != leaf) -> goto rest
#endif
        :: else
        fi;
        size = 0;
        leaf = 0;
        origins < ORIGINS && db.size < SIZE_MAX;
        d_step { root_of_log(grown, db.numbered) };
        shared_size_is_true = shared <= db.numbered &&
            PREFIX(grown, db.numbered, shared) ==
            PREFIX(archive[past].root[past_size], past_size, shared);
        assert(shared_size_is_true);
        grown = 0;
        lineage_is_sound = !(known & (1 << past)) || past == origin;
        assert(lineage_is_sound);
        begin(at, past, past_size, shared);
        append(at);
        at = 0
       }
       find_divergence();
       if
       :: past_size != 0 && (shared < past_size || is_over) -> goto again
       :: past_size == 0 || shared == past_size && !is_over
       fi;
rest:
       atomic { forget() }
    od
}
#endif
