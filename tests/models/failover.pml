/*
 * Failover, and a new lineage: Checkpoints.make and begin_lineage (service/evidence/checkpoints).
 *
 * Modelled, a step a transaction or a call of the archive: a process that makes checkpoints, an
 * operator who begins lineages without --force, a writer, and disasters. A disaster puts an earlier
 * state of the whole database in place of the present one: a replica that lagged, or a restore.
 * Processes go on with what they know from before; what they do next meets the other database. The
 * operator begins anew then. A process may die between storing a checkpoint and publishing it.
 *
 * An event is a number that is never used twice; those below FIRST_PLAIN begin the lineage of that
 * number. A root is the whole prefix of the log, in octal digits: what hashes are trusted for.
 *
 * With SYNCHRONOUS, storing a checkpoint waits for the replica that takes over, as the service tells
 * PostgreSQL to. Two processes make checkpoints then, and a publication may come late.
 *
 * Without, the replica may lag, or be a backup, and this is assumed: one process makes checkpoints,
 * and what it stored is published, or never will be, before another database takes over. Two
 * could contradict each other at such a moment: one publishes from the old database after the other
 * has asked the archive, which then reads the log of the new one.
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
 */

#define SIZE_MAX 4
#define PLAIN 2
#ifdef SYNCHRONOUS
#define MAKERS 2
#define DISASTERS 1
#define ORIGINS 2
#else
#define MAKERS 1
#define DISASTERS 2
#define ORIGINS 3
#endif
#define FIRST_PLAIN (ORIGINS + 1)
#define PLAIN_LAST (ORIGINS + PLAIN)

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

/* Archived roots by origin and size; 0: none. */
typedef Sizes { short root[SIZE_MAX + 1] };
Sizes archive[ORIGINS + 1];

byte disasters = DISASTERS;
byte publishing;                    /* processes between storing and publishing */

bool origin_is_consistent, difference_is_declared, lineage_is_sound;
bool loss_is_no_alteration, shared_size_is_true;

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
    for (i : 1 .. up_to) {
        result = result * 8 + db.event[i]
    }
    i = 0
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

/* PublishedHistory.put: a name that is taken stays as it is. */
inline put(o, s, r)
{
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
    archive[o].root[s] = (archive[o].root[s] == 0 -> r : archive[o].root[s])
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
#ifdef SYNCHRONOUS
        disasters > 0;
#else
        disasters > 0 && publishing == 0;
#endif
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
    byte origin, known, unknown, start, end, first, final, i, j, k, at, reach, most;
    bool found, is_aside, holds;
    byte basis_size;
    short last_root, grown, all, basis;

end_rest:
    do
    :: atomic {
        unknown = 0; start = 0; end = 0; first = 0; final = 0;
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
            :: end != 0 -> d_step { put(origin, end, grown) }
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
            final = 0;
            for (i : start + 1 .. SIZE_MAX) {
                if
#ifndef ARCHIVE_NOT_ASKED_AHEAD
                :: archive[origin].root[i] != 0 ->
                    first = (first == 0 -> i : first);
                    final = i
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
        :: db.numbered < start || final > db.numbered -> goto end_rest
        :: else
        fi;
        end = (first != 0 -> first : db.numbered);
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
        :: start != 0 || end == 0 -> goto end_rest
        :: end > start
        fi;
        if
        :: first != 0 && archive[origin].root[end] != grown -> goto end_rest
        :: else
        fi;
        first = 0;
        final = 0;
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
        start = 0;
        db.stored_size[origin] = end;
        db.stored_root[origin] = grown;
        d_step { root_of_log(basis, db.size); basis_size = db.size };
        publishing++;
#ifdef SYNCHRONOUS
#ifndef STORING_NOT_AWAITED
        d_step { copy(replica, db) }
#endif
#endif
       }
       if
       :: d_step { put(origin, end, grown); publishing-- }
       :: publishing--                  /* the process died */
       fi;
       goto end_rest;
late:
       atomic { at = 0; end = 0; grown = 0; db.numbered = db.size };
       goto step
    od
}

/* What find_divergence finds: the past's last checkpoint, and how much of it the log has. */
inline find_divergence()
{
    d_step {
        db.numbered = db.size;
        read_lineages();
        newest_unknown(past);
        past = (past == 0 -> origin : past);
        left = disasters;
        past_size = 0;
        for (i : 1 .. SIZE_MAX) {
            if
            :: archive[past].root[i] != 0 -> past_size = i
            :: else
            fi
        }
        i = 0;
        shared = 0;
        size = db.numbered;
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

#ifndef SYNCHRONOUS
/* `claim-ledger audit lineage`, for which nothing is ever lost if it is synchronous. */
active proctype Operator()
{
    byte origin, known, past, past_size, shared, size, left, i, j, at;
    short grown;

end_rest:
    do
    :: origins > 0 && origins < ORIGINS;
       find_divergence();
       if
       :: past_size == 0 || shared == past_size -> goto rest
       :: else
       fi;
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
        grown = 0;
        size = 0
       }
again:
       atomic {                         /* _begin: one transaction, under the lock of storing */
        at = origin;
        d_step { read_lineages() };
        if
        :: origin != at || left != disasters -> goto rest
        :: else
        fi;
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
       :: past_size != 0 && shared < past_size -> goto again
       :: past_size == 0 || shared == past_size
       fi;
rest:
       atomic { origin = 0; known = 0; past = 0; past_size = 0; shared = 0; size = 0; left = 0;
        at = 0 }
    od
}
#endif
