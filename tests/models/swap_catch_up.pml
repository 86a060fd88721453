/*
 * A rebuild swaps the tables of a catch-up read model (service/ledger/rebuild/swap.py).
 *
 * Modelled, a step a statement: the log, which grows; a worker that writes rows and moves the
 * checkpoint in one transaction; a rebuild that loads its table from the log, a page a transaction,
 * and swaps it in; a reader. Locks, names and what a statement sees are those of swap.pml. A row
 * that is selected FOR UPDATE is read in its newest version, all else in that statement as of its
 * beginning.
 *
 * Left out: parked events, a log that was cut, several tables of a read model.
 *
 * Invariants, each the name of an assertion:
 *   rows_are_entire   the live rows are those of the positions up to the checkpoint, each once
 *   new_rows_hold     at the swap, the new rows are those up to the position of the swap
 *   kept_rows_hold    and so are the kept ones, which a rollback continues from there
 */

#define EVENTS 4
#define CRASHES 2
#define TRIES 2
#define NOBODY 255
#define OLD 0
#define NEW 1

/* What has committed: the log has the positions 1 to head_size. */
typedef Table { byte rows[EVENTS + 1] };
Table table[2];
byte live = OLD;
byte head_size;
byte checkpoint;

byte crashes = CRASHES;
byte checkpoint_holder = NOBODY;
byte users[2];                     /* transactions that read or write a table */
byte exclusive[2] = NOBODY;        /* and the one that keeps all others out */

bool rows_are_entire, new_rows_hold, kept_rows_hold;

/* Names are looked up until the one that was locked is still the one. */
inline open_table(t)
{
    do
    :: t = live;
       atomic {
        exclusive[t] == NOBODY;
        if
        :: live == t -> users[t]++; break
        :: else
        fi
       }
    od;
    skip
}

/* Whether a table has each of the positions up to one, once, and no other. */
inline compare(result, t, up_to)
{
    result = true;
    for (p : 1 .. EVENTS) {
        if
        :: table[t].rows[p] != (p <= up_to) -> result = false
        :: else
        fi
    }
    p = 0;
    assert(result)
}

active proctype Sequencer()
{
    do
    :: head_size < EVENTS -> head_size++
    :: head_size == EVENTS -> break
    od
}

/* Subscription.step, of which subscriber.pml has more. */
active proctype Worker()
{
    byte held, last, p, t;

end_idle:
    do
    :: checkpoint < head_size && checkpoint_holder == NOBODY ->
       atomic {                    /* subscription_hold: for update skip locked */
        if
        :: checkpoint_holder == NOBODY -> checkpoint_holder = _pid
        :: else -> goto end_idle
        fi;
        held = checkpoint
       }
       last = (held + 2 < head_size -> held + 2 : head_size);
       open_table(t);
       if
       :: atomic { crashes > 0 -> crashes-- }
       :: d_step {
            for (p : held + 1 .. last) {
                table[t].rows[p]++
            }
            p = 0;
            checkpoint = last
          }
       fi;
       atomic { users[t]--; checkpoint_holder = NOBODY; held = 0; last = 0; t = 0 }
    od
}

/* A SELECT of a page, in READ COMMITTED. */
active proctype Reader()
{
    byte t, p;

    open_table(t);
    d_step { compare(rows_are_entire, t, checkpoint) }
    atomic { users[t]--; t = 0 }
}

inline load()
{
    target = (checkpoint < head_size -> checkpoint : head_size);
    atomic {
        for (p : position + 1 .. target) {
            table[NEW].rows[p]++
        }
        position = (position < target -> target : position);
        target = 0;
        p = 0
    }
}

active proctype Rebuild()
{
    byte position, target, p, tries;
#ifdef HEAD_READ_BEFORE_THE_WAIT
    byte seen;
#endif

    load();
again:
    tries++;
    load();
#ifdef CHECKPOINT_NOT_HELD
    target = (checkpoint < head_size -> checkpoint : head_size);
#else
#ifdef HEAD_READ_BEFORE_THE_WAIT
    seen = head_size;              /* one statement: its snapshot has the head */
#endif
    if                             /* checkpoint_hold */
    :: atomic { checkpoint_holder == NOBODY -> checkpoint_holder = _pid }
    :: goto not_now                /* lock_timeout */
    fi;
#ifdef HEAD_READ_BEFORE_THE_WAIT
    target = (checkpoint < seen -> checkpoint : seen);
#endif
#endif
    if
    :: atomic { users[OLD] == 0 -> exclusive[OLD] = _pid }
    :: goto not_now                /* lock_timeout */
    fi;
#ifndef CHECKPOINT_NOT_HELD
#ifndef HEAD_READ_BEFORE_THE_WAIT
    target = (checkpoint < head_size -> checkpoint : head_size);   /* checkpoint */
#endif
#endif
    if
    :: atomic { crashes > 0 -> crashes--; goto not_now }
    :: d_step {                    /* apply_up_to, the exchange, subscription_move, the commit */
        for (p : position + 1 .. target) {
            table[NEW].rows[p]++
        }
        p = 0;
        live = NEW;
#ifdef CHECKPOINT_MOVED_TO_THE_HEAD
        target = head_size;
#endif
        checkpoint = target;
        compare(new_rows_hold, NEW, target);
        compare(kept_rows_hold, OLD, target);
        exclusive[OLD] = NOBODY;
        checkpoint_holder = NOBODY
       }
    fi;
    goto swapped;
not_now:
    atomic {
        if
        :: checkpoint_holder == _pid -> checkpoint_holder = NOBODY
        :: else
        fi;
        exclusive[OLD] = NOBODY;
#ifdef PROGRESS_KEPT_AFTER_A_FAILED_TRY
        position = (position < target -> target : position);
#endif
        target = 0
    };
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
        checkpoint == EVENTS && checkpoint_holder == NOBODY && users[0] == 0 && users[1] == 0;
        compare(rows_are_entire, live, EVENTS)
    }
}
