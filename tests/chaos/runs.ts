import type { Keypair } from '@stellar/stellar-sdk'
import { sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'
import { signRun } from '#lib/cli/client/run-signature.ts'
import { sponsorTransfer } from '#lib/cli/client/wallet-session.ts'
import { makeReady } from '#lib/sdk/batch-ready.ts'
import { type OwnNotes, openNotes } from '#lib/sdk/own-notes.ts'
import { type BatchState, type Payee, readBatch } from '#lib/sdk/payees.ts'
import { createPayrollClient, type PayrollClient, PayrollError, take } from '#lib/sdk/payroll-client.ts'
import { runBatch } from '#lib/sdk/run.ts'
import type { RunRequest } from '#lib/sdk/run-request.ts'
import { sealMissing } from '#lib/sdk/run-seals.ts'
import { readTerms } from '#lib/sdk/run-terms.ts'
import { sponsorCall } from '#lib/sdk/sponsored-call.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildDeposit, buildMerge, buildTransfer } from '#lib/wallet/calls.ts'
import type { RelayDocument } from '#lib/wallet/deployment.ts'
import { ensureEscrow, revokeAll } from '#lib/wallet/escrow.ts'
import { readSeal } from '#lib/wallet/seal.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { nextAmount } from './lines.ts'
import { CLIENT_WAIT_MS, unasked } from './processes.ts'

/** Someone an employer pays. The last one of an employer has no confidential account. */
interface Contractor {
  id: string
  address: string
}

/** A transfer that an employer signed for a payout of a batch, outside its runs. */
interface OwnTransfer {
  hash: string
  signedXdr: string
  /** milliseconds */
  signedAt: number
}

interface RunBatch {
  id: string
  payees: Payee[]
  /** by payout: its latest transfer */
  transfers: Map<string, OwnTransfer>
}

/** An employer whose batches the relay pays. */
export interface RunEmployer {
  payer: SignedInPayer
  contractors: readonly Contractor[]
  notes: OwnNotes
  batches: RunBatch[]
  /** whether its client is preparing or following a run: the list of amounts is used by one client at a time */
  isAtWork: boolean
}

export function openRunEmployer(payer: SignedInPayer, contractors: readonly Contractor[]): RunEmployer {
  const lines: string[] = []
  const notes = openNotes(payer, { read: () => lines, append: (added) => void lines.push(...added) })
  return { payer, contractors, notes, batches: [], isAtWork: false }
}

/** The amount that a payout owes, and to whom. */
export interface Due {
  batch: string
  contractor: string
  owner: string
  address: string
}

/** The payout of each amount (base units). No two have the same amount, so a payment shows which payout it pays. */
export const due = new Map<bigint, Due>()

/** The payouts that an employer canceled after a restore, because it could not have its own transfer recorded again. */
export const givenUp = new Set<string>()

/** Counts each action of the employers by its outcome. */
export const outcomes = new Map<string, number>()

async function countOutcome(name: string, work: () => Promise<unknown>): Promise<void> {
  const outcome = await work().then(
    () => 'done',
    (error: unknown) =>
      error instanceof PayrollError ? error.code : String(error).replaceAll(/[\dA-Za-z-]*\d[\dA-Za-z-]*/g, '…'),
  )
  const key = `${name}: ${outcome}`
  outcomes.set(key, (outcomes.get(key) ?? 0) + 1)
}

/** The context of the employers. */
export interface RunSetting {
  network: TestNetwork
  relay: RelayDocument
  /** deposits */
  issuer: Keypair
  employers: readonly RunEmployer[]
  /** the addresses of the services, without `/api` */
  bases: readonly string[]
  /** whether a restored database may lack payments: an employer makes no direct payment before all channels are reconciled */
  isIncomplete(): boolean
}

export type Runs = ReturnType<typeof openRuns>

/** After this time, in ms, an envelope of an employer can no longer apply. */
const FORGOTTEN_AFTER = 40_000
/** A client that continues a batch chooses among this many of the latest. */
const RECENT = 3
/** Longer than a delegation lasts at five ledgers per second, in ledgers. */
const LONG = 3_000
/** How many ledgers may close before a delegation is too short to be sponsored. */
const TIGHT = 10
/** How many times an employer posts its own transfer after a restore before it cancels the payout. */
const POSTS = 8
/** Base units; the contract takes no smaller deposit seriously, and no run depends on it. */
const DEPOSIT = 1_000n

/** The employers' clients in the histories. Each does what `npm run wallet -- run` does, with the same code. */
export function openRuns({ network, relay, issuer, employers, bases, isIncomplete }: RunSetting) {
  let isOver = false

  /** @param untilMs when the client is switched off, in unix ms; until then, delegations last long if `isPatient` */
  function clientOf(
    base: string,
    { session }: SignedInPayer,
    { untilMs = Number.POSITIVE_INFINITY, isPatient = false } = {},
  ): PayrollClient {
    const send = async (request: Request): Promise<Response> => {
      if (isOver || Date.now() > untilMs) throw new Error('interrupted')
      const { pathname } = new URL(request.url)
      const signal = AbortSignal.timeout(CLIENT_WAIT_MS)
      const response = await fetch(request, { signal }).catch((error: unknown) => {
        if (signal.aborted) unasked.push(`no response to ${request.method} ${pathname}`)
        throw error
      })
      if (response.status >= 500) {
        const { code = 'internal' } = (await response.clone().json()) as { code?: string }
        if (code === 'internal') unasked.push(`an undocumented ${response.status} of ${request.method} ${pathname}`)
      }
      if (!isPatient || !response.ok || !pathname.endsWith('/relay')) return response
      return Response.json({ ...((await response.json()) as object), marginLedgers: LONG })
    }
    return createPayrollClient({ baseUrl: `${base}/api`, session, fetch: send })
  }

  async function createBatch(client: PayrollClient, employer: RunEmployer, contractors: readonly Contractor[]) {
    const { id } = await take(client.POST('/batches', { body: { name: 'a run' } }))
    const payees = contractors.map(({ id: contractor, address }) => {
      const amount = BigInt(nextAmount())
      due.set(amount, { batch: id, contractor, owner: employer.payer.address, address })
      return { contractor, address, amount }
    })
    const batch: RunBatch = { id, payees, transfers: new Map() }
    employer.batches.push(batch)
    return batch
  }

  /** Starts a run whose delegations are one unit short, or end while it is in progress. */
  async function runTightly(request: RunRequest, missing: bigint): Promise<void> {
    await makeReady(request, (missing) => sealMissing(request, missing))
    const { client, holder, batch, payees, notes, say } = request
    const { payouts } = await readBatch(client, batch)
    const { ledgersPerPayout, marginLedgers } = await readTerms(client)
    const unpaid = payouts.filter(isUnpaid)
    for (const [spender = '', part] of Map.groupBy(unpaid, (one) => readSeal(one.encryptedAmount ?? '')?.spender)) {
      const isOfPart = ({ contractor }: Payee) => part.some(({ contractorId }) => contractorId === contractor)
      const amount = payees.filter(isOfPart).reduce((sum, payee) => sum + payee.amount, -missing)
      const leastLedgers = ledgersPerPayout * part.length
      const escrow = { spender, amount, leastLedgers, ledgers: Math.max(leastLedgers, marginLedgers) + TIGHT }
      await ensureEscrow(network, holder, escrow, {
        submit: (call) => sponsorCall(client, call),
        say,
        note: (liveUntilLedger) => notes.addDelegation({ batch, channel: spender, liveUntilLedger }),
      })
    }
    const { signature } = JSON.parse(await signRun(request, payees)) as { signature: string }
    await take(client.POST('/batches/{id}/run', { params: { path: { id: batch } }, body: { signature } }))
  }

  async function isLost({ hash, signedAt }: OwnTransfer): Promise<boolean> {
    const { status } = await network.rpc.getTransaction(hash)
    return status === 'FAILED' || (status === 'NOT_FOUND' && Date.now() - signedAt > FORGOTTEN_AFTER)
  }

  /**
   * After a restore, and before the relays start: the employers post their own transfers since the backup again, or cancel
   * the payouts, as docs/operate.md says.
   * @param since unix ms
   */
  async function reconcile(since: number): Promise<void> {
    for (const { payer, batches } of employers) {
      for (const [payout, transfer] of batches.flatMap(({ transfers }) => [...transfers])) {
        if (transfer.signedAt < since - FORGOTTEN_AFTER) continue
        await repeat(payer, payout, transfer)
      }
    }
  }

  async function repeat(payer: SignedInPayer, payout: string, transfer: OwnTransfer): Promise<void> {
    for (let post = 0; ; post += 1) {
      const client = clientOf(bases[post % bases.length] ?? '', payer)
      try {
        if (post >= POSTS) {
          await take(client.DELETE('/payouts/{id}', { params: { path: { id: payout } } }))
          givenUp.add(payout)
          return
        }
        if (await isLost(transfer)) return
        await sponsorTransfer(client, transfer.signedXdr, payout)
        return
      } catch (error) {
        // `payout`: the database lacks the batch, or has the payment.
        if (error instanceof PayrollError && (error.code === 'payout' || post >= POSTS)) return
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
    }
  }

  /** The actions of clients, for a history with this random source. */
  function actions(random: (below: number) => number): (() => Promise<unknown>)[] {
    isOver = false
    const pick = <Item>(items: readonly Item[]): Item | undefined => items[random(items.length)]
    const submitTo = (client: PayrollClient) => (signedXdr: string) => sponsorCall(client, signedXdr)

    /** A client of any employer at any service, which may be switched off at any moment. */
    function anyone(): { employer: RunEmployer; client: PayrollClient; batch: RunBatch | undefined } {
      const employer = pick(employers)
      if (!employer) throw new Error('a history with runs needs employers')
      const untilMs = random(3) > 0 ? Number.POSITIVE_INFINITY : Date.now() + 1_000 + random(20_000)
      const client = clientOf(pick(bases) ?? '', employer.payer, { untilMs, isPatient: random(3) > 0 })
      return { employer, client, batch: pick(employer.batches.slice(-RECENT)) }
    }

    async function run(): Promise<void> {
      const { employer, client, batch: existing } = anyone()
      const { payer, contractors, notes, batches } = employer
      if (employer.isAtWork) throw new Error('at work')
      employer.isAtWork = true
      try {
        const size = 2 + random(3)
        const first = random(contractors.length - size + 1)
        const isNew = !existing || random(3) === 0
        const batch = isNew ? await createBatch(client, employer, contractors.slice(first, first + size)) : existing
        const { payouts } = await readBatch(client, batch.id).catch((error: unknown) => {
          // The batch is younger than the backup of a restored database.
          if (error instanceof PayrollError && error.status === 404) batches.splice(batches.indexOf(batch), 1)
          throw error
        })
        const isCanceled = ({ contractor }: Payee) =>
          payouts.some(({ contractorId, status }) => contractorId === contractor && status === 'canceled')
        const request: RunRequest = {
          deployment: network,
          client,
          holder: payer,
          relay,
          batch: batch.id,
          payees: batch.payees.filter((payee) => !isCanceled(payee)),
          notes,
          // Its own transfers are not all for payouts.
          assumesUnpaid: true,
          channels: 1 + random(2),
          revokes: random(3) === 0,
          say: () => undefined,
        }
        if (random(4) === 0) await runTightly(request, BigInt(random(2)))
        else await runBatch(request)
      } finally {
        employer.isAtWork = false
      }
    }

    /** An unpaid payout of a batch. */
    async function anyPayout(client: PayrollClient, batch: RunBatch) {
      const { payouts } = await readBatch(client, batch.id)
      return pick(payouts.filter(isUnpaid))
    }

    /** The employer pays a payout itself. It never signs twice while its first transaction may still be applied. */
    async function pay(): Promise<void> {
      const { employer, client, batch } = anyone()
      if (!batch || isIncomplete()) return
      const payout = await anyPayout(client, batch)
      const payee = batch.payees.find(({ contractor }) => contractor === payout?.contractorId)
      if (!payout || !payee) return
      const { payer } = employer
      const before = batch.transfers.get(payout.id)
      if (!before || (await isLost(before))) {
        const { spendable: opening } = await syncBalance(network, payer)
        const transfer = { to: payee.address, amount: payee.amount, opening, purpose: payout.id }
        const { hash, signedXdr } = await buildTransfer(network, payer, transfer, { seconds: 11 + random(5) })
        // Another client of this employer may have signed in the meantime.
        if (batch.transfers.get(payout.id) !== before || isIncomplete()) return
        batch.transfers.set(payout.id, { hash, signedXdr, signedAt: Date.now() })
      }
      const { signedXdr = '' } = batch.transfers.get(payout.id) ?? {}
      if (!isIncomplete()) await sponsorTransfer(client, signedXdr, payout.id)
    }

    async function cancel(): Promise<void> {
      const { client, batch } = anyone()
      if (!batch || isIncomplete()) return
      const payout = await anyPayout(client, batch)
      if (payout && !isIncomplete()) await client.DELETE('/payouts/{id}', { params: { path: { id: payout.id } } })
    }

    async function revoke(): Promise<void> {
      const { employer, client, batch } = anyone()
      if (batch)
        await revokeAll(
          network,
          employer.payer,
          employer.notes.delegations().filter((one) => one.batch === batch.id),
          submitTo(client),
        )
    }

    async function merge(): Promise<void> {
      const { employer, client } = anyone()
      const deposit = await buildDeposit(network, issuer, { to: employer.payer.address, amount: DEPOSIT })
      await sendAndWait(network, deposit.signedXdr)
      await sponsorCall(client, (await buildMerge(network, employer.payer.signer)).signedXdr)
    }

    const clients = [run, run, run, run, run, pay, pay, merge, cancel, revoke]
    return clients.map((client) => () => countOutcome(client.name, client))
  }

  return {
    employers,
    channels: relay.channels,
    actions,
    reconcile,
    /** Switches every client off. */
    stop: () => {
      isOver = true
    },
  }
}

const isUnpaid = ({ status }: BatchState['payouts'][number]) => status === 'ready' || status === 'failed'
