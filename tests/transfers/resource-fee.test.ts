import { afterAll, beforeAll, expect, test } from 'vitest'
import { endow, enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import { type RefusalReason, SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { checkResourceFee, checkResources, simulate } from '#lib/transfers/simulation.ts'
import { dependsOnRent } from '#lib/transfers/verification.ts'
import { buildDeposit, buildMerge, buildTransfer } from '#lib/wallet/calls.ts'
import { NOTHING } from '#lib/wallet/commitment.ts'
import { startTestLedger, type TestLedger } from '../support/test-ledger.ts'
import { seededRandom } from './random.ts'

/** Each transaction is checked in the ledgers after its simulation, and each later one against earlier needs. */
const ROUNDS = 8

let ledger: TestLedger
let network: Network
beforeAll(async () => {
  ledger = await startTestLedger({ closeMs: 50 })
  const { passphrase } = ledger.network
  network = openNetwork({ name: 'local', passphrase, rpcUrl: ledger.devnet.rpcUrl, pollMs: 50 })
})
afterAll(() => ledger.close())

/** A transaction that was simulated, and its need as of a later ledger. */
type Simulated = Awaited<ReturnType<typeof simulateSigned>>

async function simulateSigned(signedXdr: string) {
  const inner = decodeInner(signedXdr, ledger.network.passphrase)
  const { ext } = inner.envelope.tx
  if (ext.type !== 'sorobanData') throw new Error('no resources')
  const { resources, resourceFee } = ext.sorobanData
  const needed = await simulate(network, inner)
  return { declared: { resources, fee: resourceFee }, needed }
}

/** The reason to refuse what one transaction declares, by what another simulation needs. */
function refusalOf({ declared }: Simulated, { needed }: Simulated): RefusalReason | undefined {
  try {
    checkResources(declared.resources, needed.resources)
    checkResourceFee(declared, { fee: needed.minResourceFee, resources: needed.resources })
    return undefined
  } catch (error) {
    if (error instanceof SponsorRefusal) return error.reason
    throw error
  }
}

test.each([1, 2, 3])(
  'does not refuse a fee that was enough a few ledgers ago, no matter what others have paid since (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    const { network: wallet, issuer } = ledger
    const payer = await enrol(wallet)
    const opening = await endow(wallet, issuer, payer, 1_000n)
    const [payee, other] = [await enrol(wallet), await ledger.endowPayer(1_000n)]
    const stranger = await enrol(wallet)
    /** Others' calls, each of which changes an entry that the payment uses, or extends its lifetime. */
    const events = [
      async () => {
        const to = [payee, payer, stranger][random(3)]?.signer.publicKey() ?? ''
        const { signedXdr, next } = await buildTransfer(wallet, other, { to, amount: 1n, opening: other.opening })
        await sendAndWait(wallet, signedXdr)
        other.opening = next
      },
      async () => {
        const to = [payee, payer][random(2)]?.address ?? ''
        await sendAndWait(wallet, (await buildDeposit(wallet, issuer, { to, amount: 1n })).signedXdr)
      },
      async () => {
        const balance = { spendable: NOTHING, receiving: NOTHING }
        await sendAndWait(wallet, (await buildMerge(wallet, payee.signer, balance)).signedXdr)
      },
      async () => void (await enrol(wallet)),
      async () => undefined,
    ]
    const to = payee.signer.publicKey()
    const built: { signedXdr: string; atFirst: Simulated }[] = []
    const later: (RefusalReason | undefined)[] = []
    const earlier: (RefusalReason | undefined)[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      const { signedXdr } = await buildTransfer(wallet, payer, { to, amount: 1n, opening })
      const newest = await simulateSigned(signedXdr)
      built.push({ signedXdr, atFirst: newest })
      // The need as of an earlier ledger is what a node shows that lags.
      earlier.push(...built.map(({ atFirst }) => refusalOf(newest, atFirst)))
      await events[random(events.length)]?.()
      for (const one of built) later.push(refusalOf(one.atFirst, await simulateSigned(one.signedXdr)))
    }
    expect(later.filter((reason) => reason !== undefined)).toEqual([])
    expect(earlier.filter((reason) => reason !== undefined && !dependsOnRent(reason))).toEqual([])
  },
)
