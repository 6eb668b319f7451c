import { openProver } from '#lib/prover/node/prover.ts'
import { readReferenceString } from '#lib/prover/node/reference-string.ts'
import { loadVerifier } from '#lib/prover/verifier.ts'
import { publicInputs } from '#lib/wallet/statement.ts'
import { registration, transfer, withdrawal } from '../prover/statements.ts'
import type { Figure } from './directory.ts'

const FOLDERS = { circuits: 'lib/prover/circuits', referenceString: 'lib/prover/reference-string' }
const ROUNDS = 5
const MEBIBYTE = 1024 * 1024

/** Proofs and their verification: wall and processor time, and how much the prover adds to the process's memory. */
export async function measureProver(): Promise<Figure[]> {
  const before = process.memoryUsage.rss()
  const prover = await openProver(FOLDERS)
  try {
    const first = await measure(1, () => prover.prove(transfer()))
    const transfers = await measure(ROUNDS, () => prover.prove(transfer()))
    const others = await measure(1, async () => {
      await prover.prove(registration(7n))
      await prover.prove(withdrawal())
    })
    const memory = (process.memoryUsage.rss() - before) / MEBIBYTE
    const verify = await loadVerifier(await readReferenceString(FOLDERS.referenceString))
    const [inputs, proof] = [publicInputs(transfer()), await prover.prove(transfer())]
    const check = () => {
      if (!verify('transfer', inputs, proof, prover.verificationKeys.transfer)) throw new Error('no proof')
    }
    check()
    const verified = await measure(ROUNDS, check)
    return [
      { name: 'the first proof, with the prover loaded', found: show(first), goal: 'reported' },
      { name: 'a proof of a transfer', found: show(transfers), goal: '3 s on two idle cores' },
      { name: 'proofs of a register and a withdraw', found: show(others), goal: 'reported' },
      {
        name: 'proofs of a transfer, one after the other',
        found: `${Math.round(60_000 / transfers.wall)} a minute`,
        goal: 'reported',
      },
      { name: 'memory that the prover adds', found: `${Math.round(memory)} MiB`, goal: '250 MiB' },
      { name: 'a verification', found: show(verified), goal: '60 ms of processor time' },
    ]
  } finally {
    await prover.destroy()
  }
}

/** How long one round takes, in milliseconds. */
async function measure(rounds: number, work: () => unknown): Promise<{ wall: number; cpu: number }> {
  const [began, cpu] = [performance.now(), process.cpuUsage()]
  for (let round = 0; round < rounds; round += 1) await work()
  const { user, system } = process.cpuUsage(cpu)
  return { wall: (performance.now() - began) / rounds, cpu: (user + system) / 1_000 / rounds }
}

const show = ({ wall, cpu }: { wall: number; cpu: number }): string =>
  `${wall.toFixed(0)} ms, ${cpu.toFixed(0)} ms of processor time`
