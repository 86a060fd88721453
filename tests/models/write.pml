/*
 * Decide, try to lock, look again, append, commit: the write path of commands (decisions 3 and 6).
 *
 * Which process is which code:
 *   Batch       ClaimCommands._create_all (service/claims): the context is read, each command is
 *               decided, and `Ledger.write` writes what was decided in one statement, the function
 *               `write` (migrations/sql/0015_event_macs.sql), a step each of its statements. What is not
 *               written is tried again by Batcher (service/ledger/batching.py). A batch of one is
 *               also Ledger.decide_and_write, of onboardings and connect requests.
 *   Disconnect  a command with a transaction of its own: ConnectionCommands.disconnect, by
 *               Transaction.lock, read and append (service/ledger/ledger.py).
 *   Sweep       of an upload that the first claim refers to: service/documents/sweep.py.
 *   Sequencer   as much of it as orders events: those that have committed, by append_id
 *               (sequencer.pml has all of it).
 *
 * Two batches: the first has two claims, the second one of them again. It stands for a partner that
 * was answered 503 and repeats the claim, perhaps at another process, while the statement of the
 * abandoned batch goes on and may still commit: an abandoned caller is a batch whose answer nobody
 * gets, and the second batch begins whenever it likes. An answer may be lost, and is asked for again.
 *
 * A statement sees what had committed when it began (READ COMMITTED), one inside a volatile function
 * too. Locks are held until the transaction has ended. A lock that is only tried is taken or not,
 * and nobody waits for it; PostgreSQL also refuses it where somebody waits for an exclusive one,
 * which is one more way to the outcome `locked`. A transaction may end without its commit, CRASHES
 * times, once it has drawn its append_ids: all that ends before that changes nothing.
 *
 * Left out: how batches are put together, their size and their time: no outcome depends on them.
 * What events contain, projections (rows of the same transaction), keys and public ids.
 *
 * Invariants, each the name of an assertion:
 *   key_is_free              no event is inserted at a version that is taken: the unique key, which
 *                            would refuse it and the whole batch, is the second line
 *   created_once             a claim is answered 201 at most once
 *   acknowledged_is_there    who is answered 201 has written the claim
 *   nothing_follows_the_end  no claim has a position after its connection's end
 *   end_is_kept_to           nothing is accepted that began after the end was acknowledged, replays
 *                            included
 *   upload_is_there          no claim refers to an upload that was swept
 * And nobody waits for ever.
 *
 * Names after #ifdef and #ifndef are mutants, as in sequencer.pml.
 */

#define CLAIMS 2
#define CRASHES 1
#define NOBODY 255
#define CONNECTION 0    /* a stream, as the claims 1 and 2 are; both rest on it */

mtype = { settled, written, locked, conflict, moved, upload_gone };

/* What has committed: of each stream its version, and the append_id of its event. */
byte version[CLAIMS + 1];
byte append_id[CLAIMS + 1];
byte written_by[CLAIMS + 1] = NOBODY;
bool upload_is_swept;
bool end_is_acknowledged;

byte position[CLAIMS + 1];      /* in the log; 0: none yet */
byte head_size;
byte drawn;
byte crashes = CRASHES;
byte created[CLAIMS + 1];       /* answers of 201 */

/* Advisory locks: who holds one exclusively, and how many share the connection's. */
byte holder[CLAIMS + 1] = NOBODY;
byte sharing;

bool key_is_free, created_once, acknowledged_is_there, nothing_follows_the_end;
bool end_is_kept_to, upload_is_there;

/* The statements that look again, after those that locked. */
inline look()
{
    atomic {
        for (k : first .. last) {
            if
#ifndef VERSION_NOT_EXPECTED
#ifndef OWN_STREAM_NOT_LOOKED_AT
            :: outcome[k] == written && version[k] != 0 -> outcome[k] = conflict
#endif
#endif
#ifndef CONNECTION_NOT_LOOKED_AT
            :: outcome[k] == written && version[CONNECTION] != known -> outcome[k] = moved
#endif
            :: else
            fi
        }
        k = 0
    }
#ifndef UPLOADS_NOT_LOOKED_AT
    atomic {
        if
        :: first == 1 && outcome[1] == written && upload_is_swept -> outcome[1] = upload_gone
        :: else
        fi
    }
#endif
}

inline let_go()
{
    for (k : first .. last) {
        if
        :: holder[k] == _pid -> holder[k] = NOBODY
        :: else
        fi
    }
    k = 0;
    sharing = sharing - shares;
    shares = 0
}

/* The claims `first` to `last`, of which those that are settled need nothing any more. */
proctype Batch(byte first, last)
{
    mtype outcome[CLAIMS + 1];
    byte id[CLAIMS + 1];
    byte known, shares, k;
    bool is_late, is_left, is_refused;

again:
    atomic {                            /* the context, and what is decided on it */
        known = version[CONNECTION];
        is_late = end_is_acknowledged;
        is_left = false;
        for (k : first .. last) {
            if
            :: outcome[k] == settled || outcome[k] == upload_gone -> outcome[k] = settled
            :: else ->
                is_refused = known != 0;    /* partner_disconnected */
#ifdef REPLAY_DECIDED_WITHOUT_THE_CONNECTION
                is_refused = known != 0 && version[k] == 0;
#endif
                if
                :: is_refused -> outcome[k] = settled
                :: !is_refused && version[k] != 0 ->    /* a replay: 200 */
                    end_is_kept_to = !is_late;
                    assert(end_is_kept_to);
                    outcome[k] = settled
                :: else -> outcome[k] = written; is_left = true
                fi
            fi
        }
        k = 0;
        is_refused = false
    }
    if
    :: !is_left -> goto done
    :: else
    fi;
#ifdef LOOKED_BEFORE_LOCK
    look();
#endif
    k = first;
    do                                  /* the first statement: a lock after the other */
    :: k <= last && outcome[k] != written -> k++
    :: atomic { k <= last && outcome[k] == written ->
        if
#ifndef CONNECTION_NOT_LOCKED
        :: holder[CONNECTION] != NOBODY -> outcome[k] = locked
#endif
#ifndef OWN_STREAM_NOT_LOCKED
        :: holder[k] != NOBODY -> outcome[k] = locked
#endif
        :: else ->
            holder[k] = _pid;
            shares++;
            sharing++
        fi;
        k++
       }
    :: k > last -> k = 0; break
    od;
#ifndef LOOKED_BEFORE_LOCK
    look();
#endif
    atomic {                            /* append: ids are drawn in the order of the commands */
        for (k : first .. last) {
            if
            :: outcome[k] == written -> drawn++; id[k] = drawn
            :: else
            fi
        }
        k = 0;
#ifdef LOCKS_LET_GO_WITH_THE_FUNCTION
        let_go()
#endif
    }
    if
    :: atomic { crashes > 0 -> crashes--; let_go(); goto again }
    :: d_step {                         /* it commits, and locks go */
        for (k : first .. last) {
            if
            :: outcome[k] == written ->
#ifndef VERSION_NOT_EXPECTED
                key_is_free = version[k] == 0;
                assert(key_is_free);
#endif
                version[k]++;
                append_id[k] = id[k];
                written_by[k] = _pid;
                upload_is_there = k != 1 || !upload_is_swept;
                assert(upload_is_there)
            :: else
            fi;
            id[k] = 0
        }
        k = 0;
        let_go()
       }
    fi;
    if
    :: d_step {                         /* the answers */
        for (k : first .. last) {
            if
#ifdef LOCKED_TAKEN_FOR_WRITTEN
            :: outcome[k] == written || outcome[k] == locked ->
#else
            :: outcome[k] == written ->
#endif
                acknowledged_is_there = written_by[k] == _pid;
                assert(acknowledged_is_there);
                end_is_kept_to = !is_late;
                assert(end_is_kept_to);
                created[k]++;
                created_once = created[k] <= 1;
                assert(created_once);
                outcome[k] = settled
            :: else
            fi
        }
        k = 0
       }
    :: skip                             /* nobody gets them: what was written is asked for again */
    fi;
    goto again;
done:
    atomic { known = 0; is_late = false }
}

active proctype Disconnect()
{
    byte id;

again:
#ifdef DRAWN_BEFORE_LOCK
    atomic { drawn++; id = drawn };
#endif
    atomic {                            /* this one waits for its lock */
        holder[CONNECTION] == NOBODY && sharing == 0;
        holder[CONNECTION] = _pid
    }
#ifndef DRAWN_BEFORE_LOCK
    d_step { drawn++; id = drawn };
#endif
    if
    :: atomic { crashes > 0 -> crashes--; holder[CONNECTION] = NOBODY; id = 0; goto again }
    :: d_step {
        version[CONNECTION]++;
        append_id[CONNECTION] = id;
        holder[CONNECTION] = NOBODY;
        id = 0
       }
    fi;
    end_is_acknowledged = true
}

active proctype Sweep()
{
    bool is_used;

    atomic { holder[1] == NOBODY; holder[1] = _pid };
    is_used = version[1] != 0;
    d_step {
        if
        :: !is_used -> upload_is_swept = true
        :: else
        fi;
        holder[1] = NOBODY
    }
}

active proctype Sequencer()
{
    byte k, oldest;

end_idle:
    do
    :: d_step {
        version[0] && !position[0] || version[1] && !position[1] || version[2] && !position[2];
        oldest = NOBODY;
        for (k : 0 .. CLAIMS) {
            if
            :: version[k] && !position[k] ->
                if
                :: oldest == NOBODY -> oldest = k
                :: oldest != NOBODY && append_id[k] < append_id[oldest] -> oldest = k
                :: else
                fi
            :: else
            fi
        }
        k = 0;
        head_size++;
        position[oldest] = head_size;
        nothing_follows_the_end = oldest == CONNECTION || !position[CONNECTION];
        assert(nothing_follows_the_end);
        oldest = 0
       }
    od
}

init
{
    atomic {
        run Batch(1, 2);
        run Batch(1, 1)
    }
}
