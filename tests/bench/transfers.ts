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

/** Many payers at once: RPC calls and CPU time per settled transfer. */
export async function measureCrowd(stage: Stage, payers = 100): Promise<Measure[]> {
  const ours = await stage.prepare(payers, 1)
  const sessions = await Promise.all(ours.map(({ payer }) => signInWithWallet(stage.base, payer.signer)))
  stage.proxy.reset()
  const cpuBefore = stage.serviceCpuMs()
  await Promise.all(
    ours.map(({ chain }, index) => sponsorTransfer(connect(stage.base, sessions[index] ?? ''), chain[0] ?? '')),
  )
  const cpuMs = stage.serviceCpuMs() - cpuBefore
  const calls = stage.proxy.count()

  const others = await stage.prepare(payers, 1)
  stage.proxy.reset()
  const plain = await stage.runPlainLoop(others.map(({ chain }) => chain))
  return [
    {
      name: `${payers} payers at once: RPC calls per transfer`,
      ours: calls / payers,
      plain: stage.proxy.count() / payers,
      unit: 'calls',
      goal: 'at most 2.5',
    },
    {
      name: `${payers} payers at once: CPU per transfer`,
      ours: cpuMs / payers,
      plain: plain.cpuMs / payers,
      unit: 'ms',
      goal: 'at most 1.4x',
    },
  ]
}
