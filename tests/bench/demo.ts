import { buildIfStale } from '#lib/cli/build.ts'
import { runDemo } from '../support/demo.ts'
import type { Figure } from './directory.ts'

/** `npm run demo -- --once` with real proofs, in an empty folder, after the build. */
export async function measureDemo(): Promise<Figure> {
  buildIfStale()
  const began = performance.now()
  const { code, lines } = await runDemo({ DEVNET_PROOFS: 'real' })
  const seconds = (performance.now() - began) / 1_000
  const proofs = lines.filter((line) => /proving \d+ of \d+/.test(line)).length
  const outcome = code === 0 ? lines.at(-1) : `it ended with code ${code}`
  return {
    name: 'the demo with real proofs, after the build',
    found: `${seconds.toFixed(1)} s, ${proofs} proofs announced; ${outcome}`,
    goal: 'at most 180 s, 25 proofs',
  }
}
