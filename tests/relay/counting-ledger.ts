import { Address, type Keypair, Networks, type rpc, xdr } from '@stellar/stellar-sdk'
import { generateRelayKey } from '#lib/config/relay-key.ts'
import type { Relay } from '#lib/relay/relay.ts'
import type { Network } from '#lib/stellar/network.ts'
import { openView } from '#lib/stellar/view.ts'
import type { RecordedTransfer } from '#lib/transfers/rows.ts'
import type { EventArchive } from '#lib/wallet/archive.ts'
import { encodeField } from '#lib/wallet/grumpkin.ts'
import { drawSalt, openHolder } from '#lib/wallet/keys.ts'
import { markedSource, markKeyOf } from '#lib/wallet/payment-mark.ts'
import {
  data,
  rules,
  scAddress,
  signTransaction,
  sponsor,
  TOKEN,
  timeBounds,
  transactionHash,
  transferTransaction,
} from '../support/inner-transaction.ts'
import type { LineFixture } from './line-fixture.ts'

const PASSPHRASE = Networks.TESTNET

/** A payment that a ledger has applied. */
export interface AppliedPayment {
  hash: string
  ledger: number
  signedXdr: string
  topics: xdr.ScVal[]
  value: xdr.ScVal
}

/** A network that closes a ledger per call, from ledger 101 on. */
export interface CountingLedger {
  /** when ledger 100 closed (ms); each later one closes 5 s after the previous one */
  closedAt?: number
  /** Reads an account: by default number 8, as of the latest ledger. */
  readAccount?(latest: number, address: string): Promise<{ sequence: bigint | undefined; ledger: number }>
  payments?: readonly AppliedPayment[]
  /** how many ledgers the events are behind */
  eventsBehind?: number
  /** the oldest ledger of the RPC, and of its transactions */
  oldestLedger?: number
  archives?: readonly EventArchive[]
  /** the hash of a transaction that no response shows yet */
  hides?: string
  /** runs before a response to getTransaction */
  onLookUp?(hash: string): Promise<void>
}

const symbol = (name: string) => xdr.ScVal.scvSymbol(name)
const topicOf = (address: string) => Address.fromString(address).toScVal()

/** The payment of a channel, of its own balance or out of an escrow, marked with its purpose. */
export function payment({
  channel,
  owner,
  to,
  purpose = 'a purpose of no database',
  ledger,
  number = BigInt(ledger),
}: {
  channel: Keypair
  owner?: string
  to: string
  purpose?: string
  ledger: number
  number?: bigint
}): AppliedPayment {
  const signer = channel.publicKey()
  const parties = owner === undefined ? [signer, to] : [signer, owner, to]
  const functionName = owner === undefined ? 'confidential_transfer' : 'confidential_transfer_from'
  const tx = transferTransaction({
    call: { functionName, args: [...parties.map(scAddress), data] },
    tx: {
      sourceAccount: xdr.MuxedAccount.keyTypeEd25519(channel.rawPublicKey()),
      seqNum: number,
      cond: timeBounds(0, 1),
    },
  })
  const salt = encodeField(drawSalt(markedSource({ signer: markKeyOf(holderOf(channel).keys.vk) }, purpose)))
  const field = symbol(owner === undefined ? 'sigma' : 'sigma_a_new')
  return {
    hash: Buffer.from(transactionHash(tx, PASSPHRASE)).toString('hex'),
    ledger,
    signedXdr: signTransaction(tx, [channel], PASSPHRASE),
    topics: [symbol(owner === undefined ? 'transfer' : 'spender_transfer'), ...parties.map(topicOf)],
    value: xdr.ScVal.scvMap([new xdr.ScMapEntry({ key: field, val: xdr.ScVal.scvBytes(salt) })]),
  }
}

const holderOf = (channel: Keypair) => openHolder(channel, TOKEN)

/** An archive that has these events, and its registration, of an account. */
export function archiveOf(account: string, payments: readonly AppliedPayment[], complete = true): EventArchive {
  const registration = { hash: 'registered', ledger: 1, topics: [symbol('register'), topicOf(account)], value: VOID }
  return {
    name: 'an archive',
    findStart: async () => undefined,
    readEvents: async (_, from = 0) => {
      const events = [registration, ...payments].filter(({ ledger }) => ledger >= from)
      return { complete, events: events.map(archived) }
    },
  }
}

const VOID = xdr.ScVal.scvMap([])

const archived = ({ hash, ledger, topics, value }: Pick<AppliedPayment, 'hash' | 'ledger' | 'topics' | 'value'>) => ({
  id: `${BigInt(ledger) << 32n}-1`,
  contract_id: TOKEN,
  ledger_seq: ledger,
  ledger_close_time: new Date(0).toISOString(),
  tx_hash: hash,
  event_index: 0,
  topics_xdr: topics.map((topic) => topic.toXdr('base64')),
  data_xdr: value.toXdr('base64'),
})

const SUCCESS = new xdr.TransactionResult({
  feeCharged: 100n,
  result: xdr.TransactionResultResult.txSuccess([]),
  ext: xdr.TransactionResultExt.v0(),
}).toXdr('base64')

type CountingRelay = Relay & Pick<Relay['sponsor']['tracker'], 'readAccount'> & { starts: (number | undefined)[] }

/**
 * A relay with the seeds of `channels` on such a network, whose channels have all registered; `starts` collects the first ledgers
 * of its calls of getEvents.
 */
export function relayOn(
  fixture: LineFixture,
  ledger: CountingLedger,
  channels: readonly Keypair[] = [],
  key = generateRelayKey(),
): CountingRelay {
  const { closedAt = Date.now(), payments = [], eventsBehind = 0, oldestLedger = 0, archives = [] } = ledger
  const { readAccount: read = async (latest) => ({ sequence: 8n, ledger: latest }) } = ledger
  let latest = 100
  const starts: (number | undefined)[] = []
  const closeTimeOf = (number: number) => Math.floor(closedAt / 1000) + (number - 100) * 5

  const call = async (method: string, { hash }: { hash?: string } = {}) => {
    latest += 1
    const range = { latestLedger: latest, latestLedgerCloseTime: closeTimeOf(latest), oldestLedger }
    if (method === 'getHealth') return range
    if (method !== 'getTransaction') return { sequence: latest, closeTime: closeTimeOf(latest) }
    await ledger.onLookUp?.(hash ?? '')
    const found = payments.find((each) => each.hash === hash && hash !== ledger.hides && each.ledger >= oldestLedger)
    if (!found) return { status: 'NOT_FOUND', ...range }
    const transaction = { ledger: found.ledger, createdAt: closeTimeOf(found.ledger), envelopeXdr: found.signedXdr }
    return { status: 'SUCCESS', ...range, ...transaction, resultXdr: SUCCESS }
  }

  const view = openView({
    pollMs: 1,
    call: async (method, params, schema) => {
      const answer = schema.parse(await call(method, params))
      view.observe(answer.sequence, answer.closeTime)
      return answer
    },
  })

  const getEvents = async ({ startLedger, filters }: rpc.Api.GetEventsRequest) => {
    starts.push(startLedger)
    const account = filters[0]?.topics?.[0]?.[1] ?? ''
    const registration = { hash: 'registered', ledger: 1, topics: [symbol('register')], value: VOID }
    const own = payments.filter(({ topics }) => topics[1]?.toXdr('base64') === account)
    const latestLedger = latest - eventsBehind
    const events = [registration, ...own]
      .filter((event) => event.ledger >= oldestLedger && event.ledger <= latestLedger)
      .map(({ hash, topics, ...event }) => ({ ...event, txHash: hash, topic: topics }))
    return { events, latestLedger, cursor: `${BigInt(latestLedger) << 32n}-1` }
  }

  const getLedgerEntries = async () => ({ entries: [], latestLedger: latest })
  const network = {
    passphrase: PASSPHRASE,
    pollMs: 1,
    call,
    view,
    server: { getEvents, getLedgerEntries },
  } as unknown as Network
  const readAccount = async (address: string) => {
    const { sequence, ledger: asOf } = await read(latest, address)
    return { account: sequence === undefined ? undefined : { seqNum: sequence }, latestLedger: asOf }
  }
  const { database } = fixture.relayWith()
  const tracker = {
    network,
    database,
    readAccount,
    view,
    submit: async ({ transfer }: RecordedTransfer) => ({ kind: 'settled', transfer }),
    track: async () => [],
  }
  const part = {
    network,
    readAccount,
    starts,
    key,
    ledger: view,
    channels: channels.map(holderOf),
    deployment: async () => ({ archives }),
    memory: { readAccount, markKeys: new Map() },
    sponsor: {
      network,
      tracker,
      keypair: sponsor,
      rules,
      limits: undefined,
      controlledAddresses: async () => new Set(),
      readFloat: async () => 0n,
      now: () => new Date(view.now()),
    },
  }
  return { ...fixture.relayWith(), ...part } as unknown as CountingRelay
}
