/*
 * Append, crash, number, read: Transaction.append and Sequencer.step (service/ledger).
 *
 * Modelled, a step a statement of PostgreSQL: three writers, two of them of one stream; two
 * sequencers; whoever reads the log and remembers how far. A statement sees what had committed when
 * it began (READ COMMITTED). A transaction's own writes are kept in its process, and all of them
 * become visible in the one step that commits. Identity values are drawn at once and never given
 * back. A row that is selected FOR UPDATE is read in its newest version.
 *
 * A transaction may end without a commit before each of its statements and before its commit,
 * CRASHES times in all. A crash of the server is some of these one after the other, so it needs no
 * step of its own. That what has committed survives it is PostgreSQL's promise, not shown here.
 *
 * Left out: what events contain, the Merkle tree over them, how long anything takes.
 *
 * Invariants, each the name of an assertion:
 *   position_is_free    numbering never meets a position that is taken
 *   no_gap              positions are 1, 2, ... up to the head's size
 *   stream_order_holds  within a stream, a later version has a later position
 *   reader_not_passed   nothing appears at or before the position that a reader remembers
 *   nothing_is_lost     in the end every committed event has one position
 *   everything_is_read  and a reader has read each of them once
 *
 * Names after #ifdef and #ifndef are mutants: each takes one step away from the code, and has to
 * violate an invariant (test_models.py).
 */

#define WRITERS 3
#define IDS 6
#define CRASHES 2
#define BATCH_MAX 2
#define NOBODY 255

/* What has committed. Arrays are by append_id or by position, from 1. */
bool pending[IDS + 1];
byte stream_of[IDS + 1];
byte version_of[IDS + 1];
byte log[IDS + 1];
byte head_size;
byte last_version[2];
byte remembered;        /* by a reader: the last position that it read */
byte seen[IDS + 1];     /* by the same reader */

byte drawn;             /* the identity sequence, which no rollback takes back */
byte appended;          /* commands that have ended */
byte crashes = CRASHES;

/* Locks, each the process that holds it. */
byte key_holder[2] = NOBODY;        /* the unique key of a stream's next version */
byte head_holder = NOBODY;
byte row_holder[IDS + 1] = NOBODY;  /* rows of `pending` that a transaction has deleted */

bool position_is_free, no_gap, stream_order_holds, reader_not_passed;
bool nothing_is_lost, everything_is_read;

/* What must hold of the log after each commit that changes it. */
inline check_log()
{
    no_gap = true;
    stream_order_holds = true;
    for (p : 1 .. IDS) {
        if
        :: (log[p] != 0) != (p <= head_size) -> no_gap = false
        :: else
        fi;
        for (q : 1 .. IDS) {
            if
            :: p < q && log[p] != 0 && log[q] != 0 &&
                stream_of[log[p]] == stream_of[log[q]] &&
                version_of[log[p]] > version_of[log[q]] -> stream_order_holds = false
            :: else
            fi
        }
    }
    p = 0;
    q = 0;
#ifndef POSITION_DRAWN_BEFORE_COMMIT
    assert(no_gap);
#endif
    assert(stream_order_holds)
}

inline put_into_log(place, event)
{
    position_is_free = log[place] == 0;
    assert(position_is_free);
    reader_not_passed = place > remembered;
    assert(reader_not_passed);
    log[place] = event
}

/* The sequencer's transaction ends, and with it its locks. */
inline let_go()
{
    for (p : 1 .. IDS) {
        if
        :: row_holder[p] == _pid -> row_holder[p] = NOBODY
        :: else
        fi
    }
    p = 0;
    if
    :: head_holder == _pid -> head_holder = NOBODY
    :: else
    fi
}

/* A command that appends one event: `Transaction.read`, then `Transaction.append`. */
proctype Writer(byte stream)
{
    byte expected, id, p, q;

again:
#ifdef DRAWN_BEFORE_READ
    atomic { drawn++; id = drawn }
#endif
    expected = last_version[stream];
#ifndef DRAWN_BEFORE_READ
    atomic { drawn++; id = drawn }   /* the row is formed ... */
#endif
    atomic {                         /* ... and then waits for whoever inserts the same key */
        key_holder[stream] == NOBODY;
        if
        :: last_version[stream] != expected -> expected = 0; id = 0; goto again
        :: else -> key_holder[stream] = _pid
        fi
    }
    if
    :: atomic {
        crashes > 0 -> crashes--;
        key_holder[stream] = NOBODY; expected = 0; id = 0;
        goto again
       }
    :: d_step {
        stream_of[id] = stream;
        version_of[id] = expected + 1;
        last_version[stream] = expected + 1;
        key_holder[stream] = NOBODY;
        appended++;
#ifdef POSITION_DRAWN_BEFORE_COMMIT
        put_into_log(id, id);
        head_size = (id > head_size -> id : head_size);
        check_log()
#else
        pending[id] = true
#endif
       }
    fi
}

/* `Sequencer.step` */
active [2] proctype Sequencer()
{
    byte size, count, p, q;
    byte batch[BATCH_MAX];

end_idle:
    do
    :: atomic {                      /* sequencer_probe */
        (pending[1] || pending[2] || pending[3] || pending[4] || pending[5] || pending[6])
       }
#ifdef HEAD_READ_BEFORE_LOCK
       size = head_size;
#endif
       atomic {                      /* sequencer_hold: for update skip locked */
#ifndef HEAD_NOT_LOCKED
        if
        :: head_holder != NOBODY -> goto done
        :: else -> head_holder = _pid
        fi;
#endif
#ifndef HEAD_READ_BEFORE_LOCK
        size = head_size
#endif
       }
       d_step {                      /* sequencer_number begins: its snapshot */
        count = 0;
        for (p : 1 .. IDS) {
            if
            :: pending[p] && count < BATCH_MAX -> batch[count] = p; count++
            :: else
            fi
        }
        p = 0;
#ifdef NUMBERED_OUT_OF_ORDER
        if
        :: count == 2 -> p = batch[0]; batch[0] = batch[1]; batch[1] = p; p = 0
        :: else
        fi
#endif
       }
       atomic {                      /* its delete waits for rows that another one deletes */
        (count < 1 || row_holder[batch[0]] == NOBODY) &&
            (count < 2 || row_holder[batch[1]] == NOBODY);
        d_step {
            if
            :: count == 2 && !pending[batch[1]] -> count--
            :: else
            fi;
            if
            :: count > 0 && !pending[batch[0]] ->
                batch[0] = batch[1];
                count--
            :: else
            fi;
            for (p : 0 .. BATCH_MAX - 1) {
                if
                :: p < count -> row_holder[batch[p]] = _pid
                :: else
                fi
            }
            p = 0
        }
       }
#ifdef QUEUE_EMPTIED_FIRST
       d_step {
        for (p : 0 .. BATCH_MAX - 1) {
            if
            :: p < count -> pending[batch[p]] = false
            :: else
            fi
        }
        p = 0
       }
#endif
       if
       :: atomic { crashes > 0 -> crashes--; let_go() }
       :: d_step {                   /* sequencer_advance, and the commit */
            for (p : 0 .. BATCH_MAX - 1) {
                if
                :: p < count ->
#ifdef POSITION_IS_APPEND_ID
                    put_into_log(batch[p], batch[p]);
                    size = batch[p] - p - 1;
#else
                    put_into_log(size + p + 1, batch[p]);
#endif
                    pending[batch[p]] = false
                :: else
                fi
            }
#ifndef SIZE_ADVANCED_APART
            if
            :: count > 0 -> head_size = size + count
            :: else
            fi;
            check_log();
            let_go()
#endif
          }
#ifdef SIZE_ADVANCED_APART
          if
          :: atomic { crashes > 0 -> crashes--; let_go() }
          :: d_step { head_size = size + count; let_go() }
          fi
#endif
       fi;
done:  atomic { size = 0; count = 0; batch[0] = 0; batch[1] = 0 }
    od
}

/*
 * Whoever follows the log and remembers how far it came: it reads
 * whatever is after that. What a subscriber does with them is in subscriber.pml.
 */
active proctype Reader()
{
    byte p;

end_idle:
    do
    :: d_step {
        head_size > remembered;
        for (p : remembered + 1 .. IDS) {
            if
            :: log[p] != 0 -> remembered = p; seen[log[p]]++
            :: else
            fi
        }
        p = 0
       }
#ifdef PLACE_READ_APART
       remembered = head_size
#endif
    od
}

/* Once nothing is under way any more. */
active proctype End()
{
    byte p, id, q;

end_not_yet:
    atomic {
        appended == WRITERS && head_holder == NOBODY && remembered == head_size &&
            !(pending[1] || pending[2] || pending[3] || pending[4] || pending[5] || pending[6]);
        nothing_is_lost = true;
        everything_is_read = true;
        for (id : 1 .. IDS) {
            q = 0;
            for (p : 1 .. IDS) {
                if
                :: log[p] == id -> q++
                :: else
                fi
            }
            if
            :: version_of[id] != 0 && q != 1 -> nothing_is_lost = false
            :: else
            fi;
            if
            :: version_of[id] != 0 && seen[id] != 1 -> everything_is_read = false
            :: else
            fi
        }
        assert(nothing_is_lost);
        assert(everything_is_read)
    }
}

init
{
    atomic { run Writer(0); run Writer(0); run Writer(1) }
}
