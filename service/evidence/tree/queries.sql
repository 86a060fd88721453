-- name: forget_nodes
-- Derived, and some are not those of the log: the worker makes all of them again. Whoever does this holds
-- the row of `hold_nodes`, or the worker would go on behind what is gone.
delete from ledger.tree_nodes

-- name: goal
-- How many events have a number, once there is a checkpoint: then somebody may want proofs. Whatever its
-- date says, which a wrong clock may have made.
select (select size from ledger.head where id = 1 and exists(select from ledger.checkpoints)) as size

-- name: hold_nodes
-- Who changes nodes holds this; nobody waits for whoever is at it.
select kind from ledger.log_findings where kind = 'tree_nodes' for update skip locked

-- name: keep_nodes
-- Nodes of one level, the first of them at an index.
insert into ledger.tree_nodes (level, node_index, hash)
select $1, $2 + one.number - 1, one.hash
from unnest($3::bytea[]) with ordinality as one (hash, number)
on conflict do nothing

-- name: leaf_tiles
-- Tiles of 256 leaf hashes each, of the first $2, joined.
select t.tile, string_agg(l.leaf_hash, ''::bytea order by l.position) as hashes
from unnest($1::bigint[]) as t (tile)
join ledger.log as l
    on l.position > t.tile * 256 and l.position <= least(t.tile * 256 + 256, $2::bigint)
group by t.tile

-- name: node_tiles
-- Tiles of 256 nodes of a level each, of its first $3, joined.
select t.tile, string_agg(n.hash, ''::bytea order by n.node_index) as hashes
from unnest($2::bigint[]) as t (tile)
join ledger.tree_nodes as n
    on
        n.level = $1::int
        and n.node_index >= t.tile * 256
        and n.node_index < least(t.tile * 256 + 256, $3::bigint)
group by t.tile

-- name: note_forgotten
-- Says that altered nodes were read, and holds the row until they are gone. Without a MAC: it is a finding
-- of nobody in particular until a pass of the worker has found nothing (log_findings).
update ledger.log_findings set faults = greatest(faults, 1), fault = null, mac = null
where kind = 'tree_nodes'

-- name: stored_nodes
-- How many nodes of each level are stored. Whoever can add one can give it a number without a successor.
select
    l.level,
    (
        select least(n.node_index, 9223372036854775806) + 1 from ledger.tree_nodes as n
        where n.level = l.level order by n.node_index desc limit 1
    ) as nodes
from generate_series(1, 7) as l (level)
