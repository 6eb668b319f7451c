import { expect } from 'vitest'
import type { TestNetwork } from '#lib/cli/client/participants.ts'

/** Resolves once this many ledgers have closed. */
export async function passLedgers({ rpc }: TestNetwork, count: number): Promise<void> {
  const read = async () => (await rpc.getLatestLedger()).sequence
  const first = await read()
  await expect.poll(read).toBeGreaterThanOrEqual(first + count)
}
