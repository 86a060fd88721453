/*
 * A subscriber that follows the log: Subscription.step (service/ledger/following/runner.py).
 *
 * Modelled, a step a statement: two workers of one subscriber while the log grows. What the events
 * cause is written in the transaction that moves the checkpoint. A row that is selected FOR UPDATE
 * is read in its newest version, all else in that statement as of its beginning (READ COMMITTED).
 * A transaction may end without a commit before its commit, CRASHES times.
 *
 * Left out: parking, effects outside the database, a log that was cut. That positions have no gap
 * and none appears late is shown in sequencer.pml.
 *
 * Invariants, each the name of an assertion:
 *   handled_once           no event is handled twice, as far as the database goes
 *   everything_is_handled  the checkpoint passes over no event
 *   no_false_loss          a worker never takes an event for lost that the log has
 */

#define EVENTS 5
#define CRASHES 3
#define PAGE 2
#define NOBODY 255

byte head_size;                     /* the log has the positions 1 to head_size */
byte checkpoint;
byte handled[EVENTS + 1];
byte checkpoint_holder = NOBODY;
byte crashes = CRASHES;

bool handled_once, everything_is_handled, no_false_loss;

inline let_go()
{
    if
    :: checkpoint_holder == _pid -> checkpoint_holder = NOBODY
    :: else
    fi
}

active proctype Sequencer()
{
    do
    :: head_size < EVENTS -> head_size++
    :: head_size == EVENTS -> break
    od
}

active [2] proctype Worker()
{
    byte held, seen, last, p;

end_idle:
    do
    :: head_size != checkpoint;     /* subscription_behind */
#ifdef CHECKPOINT_NOT_LOCKED
       held = checkpoint;
#else
       seen = head_size;            /* subscription_hold begins: its snapshot of the log */
       atomic {                     /* for update skip locked */
        if
        :: checkpoint_holder != NOBODY -> goto done
        :: else -> checkpoint_holder = _pid
        fi;
        held = checkpoint
       }
       if
       :: held > seen ->            /* is_lost: the log of the snapshot ends before it */
#ifndef LOSS_NOT_LOOKED_AT_AGAIN
          seen = head_size;         /* the same statement again, under the lock */
#endif
          atomic { no_false_loss = held <= seen; assert(no_false_loss) }
       :: else
       fi;
#endif
       last = (held + PAGE < head_size -> held + PAGE : head_size);   /* subscription_events */
       if
       :: last > held + 1 -> last = held + 1    /* its time was up after the first */
       :: true
       fi;
#ifdef CHECKPOINT_MOVED_FIRST
       checkpoint = last;
#endif
       if
       :: atomic { crashes > 0 -> crashes--; let_go() }
       :: d_step {                  /* what the events cause, subscription_move, and the commit */
            for (p : held + 1 .. last) {
                handled[p]++;
                handled_once = handled[p] == 1;
                assert(handled_once)
            }
            p = 0;
#ifdef MOVED_TO_THE_HEAD
            last = head_size;
#endif
            checkpoint = last;
            let_go()
          }
       fi;
done:  atomic { held = 0; seen = 0; last = 0 }
    od
}

/* Once nothing is under way any more. */
active proctype End()
{
    byte p;

end_not_yet:
    atomic {
        checkpoint == EVENTS && checkpoint_holder == NOBODY;
        everything_is_handled = true;
        for (p : 1 .. EVENTS) {
            if
            :: handled[p] == 0 -> everything_is_handled = false
            :: else
            fi
        }
        assert(everything_is_handled)
    }
}
