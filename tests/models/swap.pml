/*
 * A rebuild swaps the tables of an inline read model (service/ledger/rebuild/swap.py).
 *
 * Modelled, a step a statement: writers that append an event and then write its row, in one
 * transaction; a sequencer; a rebuild that loads its table from the log, a page a transaction, and
 * swaps it in; a reader. A statement that names a table looks the name up, waits for the table's
 * lock, and looks the name up again if it had to wait; its snapshot is taken after that. Locks are
 * held until the transaction ends, and what it wrote becomes visible in the one step that commits.
 * A transaction may end without a commit before its commit, CRASHES times. The swap may give up
 * wherever it waits, and tries again TRIES times.
 *
 * Left out: several tables of a read model, which are locked in one order; vacuums; what rows
 * contain, so a row stands for its event. A rebuild that is lost is made again, so it does not
 * crash here other than in a try.
 *
 * Invariants, each the name of an assertion:
 *   table_is_there    a statement always finds a live table
 *   rows_are_entire   the live rows are those of all events that have committed, each once
 *   new_rows_hold     at the swap, the new rows are those of all positions, each once
 *   kept_rows_hold    and so are the kept ones: they are at the position that is noted
 */

#define IDS 3
#define CRASHES 1
#define TRIES 2
#define NOBODY 255
#define OLD 0
#define NEW 1
#define NONE 2

/* What has committed. Arrays are by append_id or by position, from 1. */
typedef Table { byte rows[IDS + 1] };
Table table[2];
byte live = OLD;                   /* the table of that name in the live schema */
bool committed[IDS + 1];
bool pending[IDS + 1];
byte log[IDS + 1];
byte head_size;

byte ended;                        /* writers */
byte crashes = CRASHES;
byte head_holder = NOBODY;
byte users[2];                     /* transactions that read or write a table */
byte exclusive[2] = NOBODY;        /* and the one that keeps all others out */

bool table_is_there, rows_are_entire, new_rows_hold, kept_rows_hold;

/* Names are looked up until the one that was locked is still the one. */
inline open_table(t)
{
    do
    :: t = live;
       table_is_there = t != NONE;
       assert(table_is_there);
       atomic {
        exclusive[t] == NOBODY;
        if
#ifdef NAME_LOOKED_UP_ONCE
        :: users[t]++; break
#else
        :: live == t -> users[t]++; break
        :: else
#endif
        fi
       }
    od;
    skip
}

/* Ids are drawn when writers begin, and they commit in any order after that. */
proctype Writer(byte id)
{
    byte t;

    open_table(t);
    if
    :: atomic { crashes > 0 -> crashes--; users[t]--; ended++ }
    :: d_step {
        table[t].rows[id]++;
        committed[id] = true;
        pending[id] = true;
        users[t]--;
        ended++
       }
    fi
}

/* The oldest event that waits for a number; 0: none does. */
inline oldest_pending(id)
{
    id = 0;
    for (p : 1 .. IDS) {
        if
        :: pending[p] && !taken[p] && id == 0 -> id = p
        :: else
        fi
    }
    p = 0
}

/* A batch is one event here, so that the swap's loop is gone through. */
active proctype Sequencer()
{
    byte id, p;
    bool taken[IDS + 1];

end_idle:
    do
    :: atomic {
        head_holder == NOBODY && (pending[1] || pending[2] || pending[3]);
        head_holder = _pid
       }
       d_step { oldest_pending(id) }
       if
       :: atomic { crashes > 0 -> crashes--; head_holder = NOBODY; id = 0 }
       :: d_step {
            if
            :: id != 0 -> head_size++; log[head_size] = id; pending[id] = false
            :: else
            fi;
            head_holder = NOBODY;
            id = 0
          }
       fi
    od
}

/* A SELECT of a page, in READ COMMITTED. */
active proctype Reader()
{
    byte t, p;
#ifdef READER_KEEPS_AN_OLDER_SNAPSHOT
    Table before[2];
    bool had[IDS + 1];
#endif

#ifdef READER_KEEPS_AN_OLDER_SNAPSHOT
    d_step {
        for (p : 1 .. IDS) {
            before[0].rows[p] = table[0].rows[p];
            before[1].rows[p] = table[1].rows[p];
            had[p] = committed[p]
        }
        p = 0
    }
#endif
    open_table(t);
    d_step {
        rows_are_entire = true;
        for (p : 1 .. IDS) {
#ifdef READER_KEEPS_AN_OLDER_SNAPSHOT
            if
            :: before[t].rows[p] != had[p] -> rows_are_entire = false
            :: else
            fi
#else
            if
            :: table[t].rows[p] != committed[p] -> rows_are_entire = false
            :: else
            fi
#endif
        }
        p = 0;
        assert(rows_are_entire)
    }
    atomic { users[t]--; t = 0 }
}

/* Builder.load: what the log has, in transactions of their own. */
inline load()
{
    target = head_size;
    d_step {
        for (p : position + 1 .. target) {
            table[NEW].rows[log[p]]++
        }
        position = target;
        p = 0;
        target = 0
    }
}

inline lock_tables()
{
    if
    :: atomic { users[OLD] == 0 -> exclusive[OLD] = _pid }
    :: goto not_now                /* lock_timeout */
    fi
}

inline commit_numbers()
{
    for (p : 1 .. size) {
        log[p] = mine[p]
    }
    for (p : 1 .. IDS) {
        if
        :: taken[p] -> pending[p] = false
        :: else
        fi
    }
    if
    :: size > head_size -> head_size = size
    :: else
    fi
}

inline roll_back()
{
    for (p : 1 .. IDS) {
        taken[p] = false;
        mine[p] = 0
    }
    if
    :: head_holder == _pid -> head_holder = NOBODY
    :: else
    fi;
    if
    :: exclusive[OLD] == _pid -> exclusive[OLD] = NOBODY
    :: else
    fi;
    p = 0;
    size = 0;
    last = 0;
    id = 0
}

active proctype Rebuild()
{
    byte position, target, last, size, id, p, tries;
    bool taken[IDS + 1];           /* from `pending`, by this transaction */
    byte mine[IDS + 1];            /* the log as this transaction sees it */

    load();
again:
    tries++;
    load();
#ifndef LOCKED_AFTER_NUMBERING
    lock_tables();
#endif
#ifdef NOTHING_NUMBERED
    atomic { size = head_size; goto numbered };
#endif
    d_step {                       /* newest_unnumbered */
        for (p : 1 .. IDS) {
            if
            :: pending[p] -> last = p
            :: else
            fi
        }
        p = 0
    }
    do
    :: atomic {                    /* is_numbered: one batch at a time until nothing is before it */
        d_step { oldest_pending(id) };
        if
        :: id == 0 || id > last -> id = 0; break
        :: else
        fi;
        if                         /* sequencer_hold: for update skip locked */
        :: head_holder == NOBODY -> head_holder = _pid
        :: head_holder == _pid
        :: head_holder != NOBODY && head_holder != _pid -> goto look_again
        :: head_holder != NOBODY && head_holder != _pid -> goto not_now
        fi
       }
       d_step {                    /* sequencer_number, sequencer_advance */
        if
        :: size == 0 -> size = head_size
        :: else
        fi;
        oldest_pending(id);
        if
        :: id != 0 -> size++; mine[size] = id; taken[id] = true
        :: else
        fi;
        id = 0
       }
#ifdef ONE_BATCH_NUMBERED
       break
#endif
look_again:
       skip
    od;
    atomic {                       /* head */
        if
        :: size == 0 -> size = head_size
        :: else
        fi
    }
numbered:
    skip;
    d_step {
        for (p : 1 .. size) {
            if
            :: mine[p] == 0 -> mine[p] = log[p]
            :: else
            fi
        }
        p = 0
    }
#ifdef LOCKED_AFTER_NUMBERING
    lock_tables();
#endif
#ifdef MOVED_IN_TWO_TRANSACTIONS
    live = NONE;
#endif
    if
    :: atomic { crashes > 0 -> crashes--; goto not_now }
    :: d_step {                    /* apply_up_to, the exchange, and the commit */
        commit_numbers();
        for (p : position + 1 .. size) {
            table[NEW].rows[log[p]]++
        }
        live = NEW;
        new_rows_hold = true;
        kept_rows_hold = true;
        for (p : 1 .. IDS) {
            if
            :: table[NEW].rows[p] != (committed[p] && !pending[p]) -> new_rows_hold = false
            :: else
            fi;
            if
            :: table[OLD].rows[p] != (committed[p] && !pending[p]) -> kept_rows_hold = false
            :: else
            fi
        }
        assert(new_rows_hold);
        assert(kept_rows_hold);
        roll_back();
        position = 0
       }
    fi;
    goto swapped;
not_now:
    skip;
    d_step {
#ifdef PROGRESS_KEPT_AFTER_A_FAILED_TRY
        if
        :: size > position -> position = size
        :: else
        fi;
#endif
        roll_back()
    }
    if
    :: tries < TRIES -> goto again
    :: tries == TRIES              /* refused: nothing was swapped */
    fi;
swapped:
    skip
}

/* Once nothing is under way any more. */
active proctype End()
{
    byte p;

end_not_yet:
    atomic {
        ended == IDS && users[0] == 0 && users[1] == 0 && live != NONE;
        rows_are_entire = true;
        for (p : 1 .. IDS) {
            if
            :: table[live].rows[p] != committed[p] -> rows_are_entire = false
            :: else
            fi
        }
        assert(rows_are_entire)
    }
}

init
{
    atomic { run Writer(1); run Writer(2); run Writer(3) }
}
