import { connect, signInWithWallet, sponsorTransfer } from '#lib/cli/client/wallet-session.ts'
import type { Stage } from './stage.ts'

/** One measured quantity, for the service and for the plain loop, in the same run. */
export interface Measure {
  name: string
  ours: number
  plain: number
  unit: string
  goal: string
}

/**
 * Measures how many ledgers a transfer of one payer takes. 1.0 is the minimum: a sender makes one transfer per ledger.
 */
export async function measureChain(stage: Stage, length = 20): Promise<Measure[]> {
  const [ours] = await stage.prepare(1, length)
  if (!ours) throw new Error('nobody to pay')
  const session = await signInWithWallet(stage.base, ours.payer.signer)
  const found: number[] = []
  for (const signedXdr of ours.chain) {
    const record = await stage.network.rpc.getTransaction(
      await sponsorTransfer(connect(stage.base, session), signedXdr),
    )
    if (record.status === 'SUCCESS') found.push(record.ledger)
  }
  const [other] = await stage.prepare(1, length)
  const plain = await stage.runPlainLoop([other?.chain ?? []])
  return [
    {
      name: `a chain of ${length}: ledgers per transfer`,
      ours: ledgersPerTransfer(found),
      plain: ledgersPerTransfer(plain.ledgers[0] ?? []),
      unit: 'ledgers',
      goal: '1.0',
    },
  ]
}

function ledgersPerTransfer(ledgers: number[]): number {
  return ((ledgers.at(-1) ?? 0) - (ledgers[0] ?? 0) + 1) / ledgers.length
}

/** Transfers of each payer before the measurement: by then the code is compiled. */
const WARMING_UP = 1
const MEASURED = 2

/**
 * Many payers at once: RPC calls and CPU time per settled transfer, measured after some transfers of each.
 */
export async function measureCrowd(stage: Stage, payers = 100): Promise<Measure[]> {
  const ours = await stage.prepare(payers, WARMING_UP + MEASURED)
  const sessions = await Promise.all(ours.map(({ payer }) => signInWithWallet(stage.base, payer.signer)))
  const sponsorAll = (from: number, to: number) =>
    Promise.all(
      ours.map(async ({ chain }, index) => {
        for (const signed of chain.slice(from, to)) {
          await sponsorTransfer(connect(stage.base, sessions[index] ?? ''), signed)
        }
      }),
    )
  await sponsorAll(0, WARMING_UP)
  stage.proxy.reset()
  const cpuBefore = stage.serviceCpuMs()
  await sponsorAll(WARMING_UP, WARMING_UP + MEASURED)
  const cpuMs = stage.serviceCpuMs() - cpuBefore
  const calls = stage.proxy.count()

  const others = await stage.prepare(payers, WARMING_UP + MEASURED)
  stage.proxy.reset()
  const plain = await stage.runPlainLoop(
    others.map(({ chain }) => chain),
    WARMING_UP,
  )
  const transfers = payers * MEASURED
  return [
    {
      name: `${payers} payers at once: RPC calls per transfer`,
      ours: calls / transfers,
      plain: stage.proxy.count() / (payers * (WARMING_UP + MEASURED)),
      unit: 'calls',
      goal: 'at most 2.5',
    },
    {
      name: `${payers} payers at once: CPU per transfer`,
      ours: cpuMs / transfers,
      plain: plain.cpuMs / transfers,
      unit: 'ms',
      goal: 'at most 1.4x',
    },
  ]
}
