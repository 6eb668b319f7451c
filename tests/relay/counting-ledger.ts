import { Address, Networks, type rpc, xdr } from '@stellar/stellar-sdk'
import { watchLedger } from '#lib/relay/ledger.ts'
import type { Relay } from '#lib/relay/relay.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { LineFixture } from './line-fixture.ts'

/** A network that closes a ledger per call, from ledger 101 on. */
export interface CountingLedger {
  /** when ledger 100 closed (ms); each later one closes 5 s after the previous one */
  closedAt?: number
  /** Reads the channel's account; `latest` is the latest ledger. */
  readAccount(latest: number): Promise<{ sequence: bigint | undefined; ledger: number }>
  /** the hashes and ledgers of the channel's transfers, as its events show them */
  transfers?: readonly { hash: string; ledger: number }[]
  /** how many ledgers the events are behind */
  eventsBehind?: number
  /** the oldest ledger of the RPC, which has no transaction */
  oldestLedger?: number
}

const symbol = (name: string) => xdr.ScVal.scvSymbol(name)

/** A relay with the seeds of `channels` on such a network; `starts` collects the first ledgers of its calls of getEvents. */
export function relayOn(
  fixture: LineFixture,
  address: string,
  { closedAt = Date.now(), readAccount, transfers = [], eventsBehind = 0, oldestLedger = 1 }: CountingLedger,
  channels: readonly string[] = [address],
): Relay & { starts: (number | undefined)[] } {
  let latest = 100
  const starts: (number | undefined)[] = []
  const account = Address.fromString(address).toScVal()
  const events = [
    { txHash: 'registered', ledger: 1, topic: [symbol('register'), account] },
    ...transfers.map(({ hash, ledger }) => ({ txHash: hash, ledger, topic: [symbol('transfer'), account, account] })),
  ].map((event) => ({ ...event, value: xdr.ScVal.scvMap([]) }))
  const call = async (method: string) => {
    latest += 1
    const closeTime = Math.floor(closedAt / 1000) + (latest - 100) * 5
    if (method === 'getTransaction')
      return { status: 'NOT_FOUND', latestLedger: latest, latestLedgerCloseTime: closeTime, oldestLedger }
    return method === 'getHealth' ? { oldestLedger, latestLedger: latest } : { sequence: latest, closeTime }
  }
  const getEvents = async ({ startLedger }: rpc.Api.GetEventsRequest) => {
    starts.push(startLedger)
    const latestLedger = latest - eventsBehind
    return { events, latestLedger, cursor: `${BigInt(latestLedger) << 32n}-1` }
  }
  const network = { passphrase: Networks.TESTNET, pollMs: 1, call, server: { getEvents } } as unknown as Network
  const read = async () => {
    const { sequence, ledger } = await readAccount(latest)
    return { account: sequence === undefined ? undefined : { seqNum: sequence }, latestLedger: ledger }
  }
  const tracker = { readAccount: read }
  const part = { network, ledger: watchLedger(network), sponsor: { tracker }, memory: tracker, starts }
  return { ...fixture.relayWith(...channels), ...part } as unknown as ReturnType<typeof relayOn>
}
