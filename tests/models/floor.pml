/*
 * The floor: the append_id below which a sequencer looks for nothing to number (decision 2).
 *
 * Which process is which code:
 *   Writer     an append by the function `write`, as in sequencer.pml
 *   Sequencer  Floor (service/ledger/floor.py), and what Sequencer._step numbers beyond it
 *   Owner      somebody takes an event out of the queue, and the database's owner puts it back
 *
 * Modelled: three writers, two of them of one stream; two sequencers, each with a floor of its own. An
 * append draws its append_id, is seen among the open transactions only after that, and commits at any
 * time later, or loses its key and tries again. A step of a sequencer is one statement, or one
 * transaction that numbers one event: sequencer.pml takes that one apart.
 *
 * Nothing is assumed of time. MARK_SECONDS may be over before a writer begins that had drawn its id
 * earlier: it stood still. What then waits below the floor is found by looking back, or because the
 * event after it in its stream has nothing to follow. With ON_TIME, whoever had drawn an id by the mark
 * has begun when they are over, and nobody touches the queue: then nothing is ever below a floor.
 *
 * Left out: a log that ends below the floor, since an earlier state of the database took over, and how
 * often a sequencer looks back.
 *
 * Invariants, each the name of an assertion:
 *   nothing_is_lost       in the end every committed event has one position
 *   nothing_is_set_aside  no event of ours is taken for one that follows nothing
 *   stream_order_holds    within a stream, a later version has a later position
 *   floor_not_passed      with ON_TIME: no event waits at or below a floor
 *
 * Names after #ifdef and #ifndef but ON_TIME are mutants: each takes one step away from the code, and has
 * to violate an invariant (test_models.py).
 */

#define WRITERS 3
#define SEQUENCERS 2
#define IDS 4
#define ALONE 1         /* the stream of one event */
#define NOBODY 255

/* What has committed. Arrays are by append_id, by position, or by transaction id, from 1. */
bool pending[IDS + 1];
byte stream_of[IDS + 1];
byte version_of[IDS + 1];
byte log[IDS + 1];
byte size;
byte last_version[2];
byte numbered_version[2];

byte drawn;             /* the identity sequence */
byte begun;             /* the last transaction id */
bool draws[IDS + 1];    /* the id is drawn, and its transaction is not seen to have begun */
bool is_open[IDS + 1];  /* transactions, by id */
byte key_holder[2] = NOBODY;
byte appended;          /* commands that have ended */
bool is_put_back = true;        /* what was taken out of the queue */

byte floor[SEQUENCERS];

bool nothing_is_lost, stream_order_holds, nothing_is_set_aside, floor_not_passed;

/* Beyond the floor of a sequencer, and up to it. */
#define WAITS(id, one) (pending[id] && id > floor[one])
#define WAITS_BELOW(id, one) (pending[id] && id <= floor[one])
#define DRAWS(id) (id <= mark_drawn && draws[id])   /* since before the mark */
#define ANY_WAITS(one) (WAITS(1, one) || WAITS(2, one) || WAITS(3, one) || WAITS(4, one))
#define ANY_WAITS_BELOW(one) (WAITS_BELOW(1, one) || WAITS_BELOW(2, one) || WAITS_BELOW(3, one) || \
    WAITS_BELOW(4, one))
#ifdef ON_TIME
#define HAVE_BEGUN (!DRAWS(1) && !DRAWS(2) && !DRAWS(3) && !DRAWS(4))
#else
#define HAVE_BEGUN true
#endif
#ifdef NEVER_LOOKED_BACK
#define IS_FOUND(one) false
#else
#define IS_FOUND(one) ANY_WAITS_BELOW(one)
#endif

inline check_floors()
{
#ifdef ON_TIME
    floor_not_passed = !ANY_WAITS_BELOW(0) && !ANY_WAITS_BELOW(1);
    assert(floor_not_passed)
#else
    skip
#endif
}

/* A command that appends one event to a stream: it reads, decides, and appends. */
proctype Writer(byte stream)
{
    byte expected, id, transaction;

again:
    expected = last_version[stream];
    atomic { drawn++; id = drawn; draws[id] = true }    /* the row is formed ... */
    atomic {                                            /* ... and gets its transaction's id */
        begun++;
        transaction = begun;
        is_open[transaction] = true;
        draws[id] = false
    }
    atomic {                         /* it waits for whoever inserts the same key */
        key_holder[stream] == NOBODY;
        if
        :: last_version[stream] != expected ->
            is_open[transaction] = false;
            expected = 0; id = 0; transaction = 0;
            goto again
        :: else -> key_holder[stream] = _pid
        fi
    }
    atomic {
        stream_of[id] = stream;
        version_of[id] = expected + 1;
        last_version[stream] = expected + 1;
        key_holder[stream] = NOBODY;
        is_open[transaction] = false;
        pending[id] = true;
        appended++;
        check_floors();
        expected = 0; id = 0; transaction = 0
    }
}

inline forget()
{
    floor[self] = 0;
    mark = 0;
    mark_begun = 0;
    mark_drawn = 0;
    is_aged = false
}

/* `Floor.waits` and what is numbered beyond the floor. */
proctype Sequencer(byte self)
{
    byte mark, mark_begun, mark_drawn, id;
    bool is_next, is_aged, is_over;

end_idle:
    do
    :: atomic {                      /* sequencer_number */
        ANY_WAITS(self);
        id = 1;
        do
        :: !WAITS(id, self) -> id++
        :: else -> break
        od;
#ifdef PREDECESSOR_NOT_LOOKED_AT
        is_next = true;
#else
        is_next = numbered_version[stream_of[id]] == version_of[id] - 1;
#endif
        if
        :: is_next ->
            stream_order_holds = version_of[id] > numbered_version[stream_of[id]];
            assert(stream_order_holds);
            size++;
            log[size] = id;
            pending[id] = false;
            numbered_version[stream_of[id]] = version_of[id]
        :: else ->                   /* it may follow an event below the floor */
#ifdef GAP_TAKEN_FOR_FOREIGN
            nothing_is_set_aside = false;
#else
            nothing_is_set_aside = floor[self] > 0;
#endif
            assert(nothing_is_set_aside);
            forget()
        fi;
        id = 0; is_next = false
       }
    :: atomic { IS_FOUND(self); forget() }              /* sequencer_behind */
    :: atomic {                      /* sequencer_probe: a mark at the log's end */
        mark == 0 && size > 0 && log[size] > floor[self];
        mark = log[size];
        mark_drawn = drawn;
#ifdef BEGUN_READ_WITH_THE_MARK
        mark_begun = begun;
#endif
       }
    :: atomic {                      /* MARK_SECONDS later: it sees which transactions had begun */
        mark != 0 && !is_aged && HAVE_BEGUN;
#ifndef BEGUN_READ_WITH_THE_MARK
        mark_begun = begun;
#endif
        is_aged = true
       }
    :: atomic {                      /* and later: it sees which have ended, and what waits */
        is_aged;
        is_over = true;
#ifndef OPEN_TRANSACTIONS_PASSED_OVER
        for (id : 1 .. IDS) {
            if
            :: id <= mark_begun && is_open[id] -> is_over = false
            :: else
            fi
        }
#endif
#ifndef WAITING_PASSED_OVER
        for (id : 1 .. IDS) {
            if
            :: WAITS(id, self) && id <= mark -> is_over = false
            :: else
            fi
        }
#endif
        id = 0;
        if
        :: is_over ->
            floor[self] = (mark > floor[self] -> mark : floor[self]);
            mark = 0; mark_begun = 0; mark_drawn = 0; is_aged = false;
            check_floors()
        :: else
        fi;
        is_over = false
       }
    od
}

/* An event that nothing follows is out of the queue for a while. */
#ifndef ON_TIME
active proctype Owner()
{
    byte id;

end_not_touched:
    atomic {
        (pending[1] && stream_of[1] == ALONE) || (pending[2] && stream_of[2] == ALONE) ||
            (pending[3] && stream_of[3] == ALONE) || (pending[4] && stream_of[4] == ALONE);
        id = 1;
        do
        :: !(pending[id] && stream_of[id] == ALONE) -> id++
        :: else -> break
        od;
        pending[id] = false;
        is_put_back = false
    }
    atomic { pending[id] = true; is_put_back = true; id = 0 }
}
#endif

/* Once nothing is under way any more, and no sequencer finds anything. */
active proctype End()
{
    byte p, id, q;

    atomic {
        appended == WRITERS && is_put_back && !ANY_WAITS(0) && !ANY_WAITS(1) &&
            !IS_FOUND(0) && !IS_FOUND(1);
        nothing_is_lost = true;
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
            fi
        }
        assert(nothing_is_lost)
    }
}

init
{
    atomic { run Writer(0); run Writer(0); run Writer(ALONE); run Sequencer(0); run Sequencer(1) }
}
