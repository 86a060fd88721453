/*
 * Append, crash, number, read: how events get positions (decision 2).
 *
 * Which process is which code:
 *   Writer     an append by the function `write` (migrations/sql/0015_event_macs.sql), as
 *              Transaction.append calls it (service/ledger/ledger.py): of commands that decide inside
 *              their transaction and, unless they ask for locks, rely on the unique key alone.
 *              Ledger.write calls the same function, with locks and a second look before the append:
 *              some of these orders, and the others end without a draw (write.pml has those).
 *   Sequencer  Sequencer.step (service/ledger/sequencer.py), by the statements that are named below.
 *   Reader     whoever follows the log and remembers how far (service/ledger/following).
 *
 * Modelled, a step a statement of PostgreSQL: three writers, two of them of one stream, the third of
 * two events at once; two sequencers; a reader. A statement sees what had committed when it began
 * (READ COMMITTED). A transaction's own writes are kept in its process, and all of them become
 * visible in the one step that commits. Identity values are drawn at once, a row at a time, and never
 * given back. A row that is selected FOR UPDATE is read in its newest version.
 *
 * One transaction of a writer may end without its commit, and one of a sequencer. A crash of the
 * server is both, one after the other, so it needs no step of its own. That what has committed
 * survives it is PostgreSQL's promise, not shown here.
 *
 * A sequencer's batch ends after any number of events: it is bounded in bytes, and halved when it
 * took too long.
 *
 * Left out: what events contain, the Merkle tree over them, how long anything takes. And events that
 * this service did not write: set_aside.pml has those.
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
#define BATCH_MAX 2
#define NOBODY 255
#define ANY_PENDING (pending[1] || pending[2] || pending[3] || pending[4] || pending[5] || \
    pending[6])

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
bool a_writer_can_crash = true;
bool a_sequencer_can_crash = true;

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

/* A command that appends one event, or two, to a stream: it reads, decides, and appends. */
proctype Writer(byte stream, events)
{
    byte expected, id, second, p, q;

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
        a_writer_can_crash -> a_writer_can_crash = false;
        key_holder[stream] = NOBODY; expected = 0; id = 0;
        goto again
       }
    :: events == 2 -> atomic { drawn++; second = drawn }   /* the next row, in the given order */
    :: events == 1
    fi;
    d_step {
#ifdef INSERTED_OUT_OF_ORDER
        if
        :: events == 2 -> p = id; id = second; second = p; p = 0
        :: else
        fi;
#endif
        stream_of[id] = stream;
        version_of[id] = expected + 1;
        if
        :: events == 2 -> stream_of[second] = stream; version_of[second] = expected + 2
        :: else
        fi;
        last_version[stream] = expected + events;
        key_holder[stream] = NOBODY;
        appended++;
#ifdef POSITION_DRAWN_BEFORE_COMMIT
        put_into_log(id, id);
        if
        :: events == 2 -> put_into_log(second, second); id = second
        :: else
        fi;
        head_size = (id > head_size -> id : head_size);
        check_log();
#else
        pending[id] = true;
        if
        :: events == 2 -> pending[second] = true
        :: else
        fi;
#endif
        expected = 0; id = 0; second = 0
    }
}

/* `Sequencer.step` */
active [2] proctype Sequencer()
{
    byte size, count, p, q;
    byte batch[BATCH_MAX];

end_idle:
    do
    :: ANY_PENDING;                  /* sequencer_probe */
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
       atomic {                      /* sequencer_number begins: its snapshot */
        count = 0;
        for (p : 1 .. IDS) {
            if
            :: pending[p] && count < BATCH_MAX -> batch[count] = p; count++
            :: else
            fi
        }
        p = 0;
        if
        :: count == 2
        :: count == 2 ->             /* as many bytes as one batch may have */
#ifdef LARGE_EVENT_PASSED_OVER
            batch[0] = batch[1];
#endif
            batch[1] = 0;
            count = 1
        :: else
        fi;
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
       :: atomic { a_sequencer_can_crash -> a_sequencer_can_crash = false; let_go() }
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
          :: atomic { a_sequencer_can_crash -> a_sequencer_can_crash = false; let_go() }
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
            !ANY_PENDING;
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
    atomic { run Writer(0, 1); run Writer(0, 1); run Writer(1, 2) }
}
