/*
 * Setting aside what must not be numbered, while somebody with the ledger's role helps it along
 * (decision 45).
 *
 * Which process is which code:
 *   Writer     commands that append an event each to one stream. What they decide on has MACs that
 *              hold, or they answer 503 and are repeated (Transaction.read, service/ledger/ledger.py).
 *   Insider    whoever has a login of the ledger: writes an event without the key, has events set
 *              aside, and writes those again with the MACs that they have, in any order (`write` and
 *              `set_aside_events`, migrations/sql/0015_event_macs.sql).
 *   Sequencer  Sequencer.step (service/ledger/sequencer.py): a batch in which one event must not be
 *              numbered is rolled back, and such events leave in a transaction of their own.
 *
 * How appends and batches end halfway is in sequencer.pml; here each commits in one step, and all
 * events are of one stream. An event's id is its append_id: none is drawn twice. A batch ends after
 * any number of events.
 *
 * Invariants, each the name of an assertion:
 *   only_ours_numbered  no event without a MAC that holds has a position
 *   no_version_missing  the stream's events are numbered as versions 1, 2, 3, ...
 *   event_is_there      what is numbered has not been set aside meanwhile
 *   numbered_stays      what has a position is not set aside
 *   log_goes_on         in the end nothing waits, and every event that is left has a position
 *
 * Names after #ifdef and #ifndef are mutants: each takes one step away from the code, and has to
 * violate an invariant (test_models.py).
 */

#define WRITTEN 2
#define WRITTEN_AGAIN 2
#define IDS 5
#define NOBODY 255
#define ANY_PENDING (pending[1] || pending[2] || pending[3] || pending[4] || pending[5])

/* What has committed, by append_id; a version of 0: no such event is in the stream. */
byte version_of[IDS + 1];
bool pending[IDS + 1];
bool is_ours[IDS + 1];
bool is_numbered[IDS + 1];
byte kept[IDS + 1];         /* versions of genuine events that were set aside */
byte drawn;
byte numbered, numbered_id; /* the version that was numbered last, and its id */
byte written;
byte head_holder = NOBODY;
bool insider_has_ended;

bool only_ours_numbered, no_version_missing, event_is_there, numbered_stays, log_goes_on;

/* Whether somebody else than the holder of the head may set events aside now. */
#ifdef HEAD_NOT_WAITED_FOR
#define HEAD_IS_FREE true
#else
#define HEAD_IS_FREE (head_holder == NOBODY)
#endif

inline put(version, ours)
{
    drawn++;
    version_of[drawn] = version;
    is_ours[drawn] = ours;
    pending[drawn] = true
}

/* `set_aside_events`: an event that has no number, and what follows it in its stream. */
inline leave(id)
{
    first = version_of[id];
    for (i : 1 .. IDS) {
        if
#ifdef LOG_NOT_LOOKED_AT
        :: first != 0 && version_of[i] >= first ->
#else
        :: first != 0 && version_of[i] >= first && !is_numbered[i] ->
#endif
            numbered_stays = !is_numbered[i];
            assert(numbered_stays);
            kept[i] = (is_ours[i] -> version_of[i] : 0);
            version_of[i] = 0;
            pending[i] = false
        :: else
        fi
    }
    i = 0;
    first = 0
}

/* The version with which the stream ends; NOBODY where another wrote one of its events. */
inline look(last)
{
    last = 0;
    for (i : 1 .. IDS) {
        if
        :: version_of[i] != 0 && !is_ours[i] -> last = NOBODY
        :: version_of[i] != 0 && is_ours[i] && version_of[i] > last -> last = version_of[i]
        :: else
        fi
    }
    i = 0
}

active proctype Writer()
{
    byte i, last, expected;

    do
    :: written == WRITTEN -> break
    :: else ->
       d_step { look(expected) }
       d_step {                      /* the unique key refuses what another one came before */
        look(last);
        if
        :: expected != NOBODY && expected == last -> put(last + 1, true); written++
        :: else
        fi;
        last = 0;
        expected = 0
       }
    od
}

active proctype Insider()
{
    byte i, id, first, last, again;
    bool has_forged;

    do
    :: d_step {
        !has_forged ->
        for (i : 1 .. IDS) {
            last = (version_of[i] > last -> version_of[i] : last)
        }
        i = 0;
        put(last + 1, false);
        has_forged = true;
        last = 0
       }
    :: d_step { version_of[1] != 0 && HEAD_IS_FREE -> leave(1) }
    :: d_step { version_of[2] != 0 && HEAD_IS_FREE -> leave(2) }
    :: atomic {
        again < WRITTEN_AGAIN && (kept[1] != 0 || kept[2] != 0 || kept[3] != 0);
        if
        :: kept[1] != 0 -> id = 1
        :: kept[2] != 0 -> id = 2
        :: kept[3] != 0 -> id = 3
        fi;
        d_step {
            for (i : 1 .. IDS) {     /* the unique key */
                if
                :: version_of[i] == kept[id] -> last = 1
                :: else
                fi
            }
            i = 0;
            if
            :: last == 0 -> put(kept[id], true); again++
            :: else
            fi;
            last = 0;
            id = 0
        }
       }
    :: break
    od;
    insider_has_ended = true
}

/* `Sequencer.step` */
active [2] proctype Sequencer()
{
    byte i, first, count, limit, next, next_id, batch_1, batch_2, bad_1, bad_2;

end_idle:
    do
    :: ANY_PENDING;
       atomic {                      /* sequencer_hold: skip locked */
        if
        :: head_holder != NOBODY -> goto done
        :: else -> head_holder = _pid
        fi;
        if
        :: limit = 1
        :: limit = 2
        fi
       }
       d_step {                      /* sequencer_number, and what is found of each event */
        next = numbered;
        next_id = numbered_id;
        for (i : 1 .. IDS) {
            if
            :: pending[i] && count < limit ->
                count++;
                if
#ifdef MAC_NOT_LOOKED_AT
                :: version_of[i] == next + 1 && i > next_id ->
#else
#ifdef PREDECESSOR_NOT_LOOKED_AT
                :: is_ours[i] ->
#else
                :: is_ours[i] && version_of[i] == next + 1 && i > next_id ->
#endif
#endif
                    next = version_of[i];
                    next_id = i
                :: else ->
                    if
                    :: bad_1 == 0 -> bad_1 = i
                    :: else -> bad_2 = i
                    fi
                fi;
                if
                :: batch_1 == 0 -> batch_1 = i
                :: else -> batch_2 = i
                fi
            :: else
            fi
        }
        i = 0;
#ifdef HEAD_NOT_WAITED_FOR           /* otherwise nothing that it could meet happens in between */
       }
       d_step {
#endif
        if
        :: bad_1 == 0 ->             /* the commit */
            for (i : 1 .. IDS) {
                if
                :: i == batch_1 || i == batch_2 ->
                    event_is_there = version_of[i] != 0;
                    assert(event_is_there);
                    only_ours_numbered = is_ours[i];
                    assert(only_ours_numbered);
                    no_version_missing = version_of[i] == numbered + 1;
                    assert(no_version_missing);
                    is_numbered[i] = true;
                    pending[i] = false;
                    numbered = version_of[i];
                    numbered_id = i
                :: else
                fi
            }
            i = 0
        :: else
        fi;
        head_holder = NOBODY
       }
       if
       :: bad_1 != 0 ->
          d_step {                   /* it holds the head again, and is rid of them in one step */
            if
            :: head_holder == NOBODY ->
                leave(bad_1);
                if
                :: bad_2 != 0 -> leave(bad_2)
                :: else
                fi
            :: else
            fi
          }
       :: else
       fi;
done:  atomic {
        count = 0; limit = 0; next = 0; next_id = 0;
        batch_1 = 0; batch_2 = 0; bad_1 = 0; bad_2 = 0
       }
    od
}

/* Once nothing is under way any more. */
active proctype End()
{
    byte i;

end_not_yet:
    d_step {
        written == WRITTEN && insider_has_ended && head_holder == NOBODY && !ANY_PENDING;
        log_goes_on = true;
        for (i : 1 .. IDS) {
            log_goes_on = log_goes_on && (version_of[i] == 0 || is_numbered[i])
        }
        assert(log_goes_on)
    }
}
