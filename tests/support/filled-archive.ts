import { xdr } from '@stellar/stellar-sdk'

const TOPICS = Buffer.from(xdr.ScVal.scvVec([xdr.ScVal.scvSymbol('transfer')]).toXdr()).toString('hex')
const DATA = '00'.repeat(300)

const STREAMS = `archive_streams AS streams`

/** One event of the token per ledger, and one of a registry per 100. Every second event names the largest employer. */
export function* archivedEvents(token: string, events: number): Generator<string> {
  yield `TRUNCATE archive_streams, archive_ranges, archive_final_ranges, archive_events, archive_event_accounts, archive_payloads`
  yield `INSERT INTO archive_streams (token, contract, role, generation)
    VALUES ('${token}', '${token}', 'token', repeat('a', 64)), ('${token}', 'a registry', 'registry', NULL)`
  // No RPC has ledger 0, or closes a lower ledger after the last one: that would be another network.
  yield `INSERT INTO archive_ranges (stream, from_ledger, through_ledger, from_hash, through_hash, through_closed_at)
    SELECT id, 0, ${events}, repeat('a', 64), repeat('b', 64), 4000000000 FROM ${STREAMS}`
  const position = `(e::bigint << 32) + 4096, 0`
  const isDelegation = `(role = 'token' AND e % 50 = 0)`
  yield `INSERT INTO archive_events (stream, toid, event_index, closed_at, tx_hash, type, topics, data)
    SELECT id, ${position}, e, decode(pg_temp.hash(role, e), 'hex'), CASE WHEN ${isDelegation} THEN 'set_spender' ELSE 'transfer' END,
      decode('${TOPICS}', 'hex'), decode('${DATA}', 'hex')
    FROM ${STREAMS}, generate_series(1, ${events}) e WHERE role = 'token' OR e % 100 = 0`
  yield `INSERT INTO archive_event_accounts (stream, account, toid, event_index, role)
    SELECT id, account, ${position}, named.role FROM ${STREAMS}, generate_series(1, ${events}) e,
      LATERAL (VALUES (CASE WHEN e % 2 = 0 THEN pg_temp.address('large', 0) ELSE pg_temp.address('employer', e) END, 'checkpoint'),
        (pg_temp.address('contractor', e), CASE WHEN e % 10 = 0 THEN 'anchor' END)) AS named (account, role)
    WHERE streams.role = 'token'`
  yield `INSERT INTO archive_payloads (stream, toid, event_index, status, payload)
    SELECT id, ${position}, CASE WHEN e % 100 = 0 THEN 'stored' ELSE 'wanted' END, CASE WHEN e % 100 = 0 THEN '\\x00'::bytea END
    FROM ${STREAMS}, generate_series(1, ${events}) e WHERE ${isDelegation}`
}
