import { expect } from 'vitest'
import { type RefusalReason, SponsorRefusal, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'

/** Runs `act`, which must refuse for exactly `reason`, in the words that callers read. */
export async function expectRefusal(
  act: () => unknown,
  reason: RefusalReason,
  message: string = sponsorRefused(reason).message,
): Promise<void> {
  const refusal = await thrownBy(act)
  if (!(refusal instanceof SponsorRefusal)) throw refusal ?? new Error(`not refused, in place of ${reason}`)
  expect(refusal.reason).toBe(reason)
  expect(refusal.code).toBe(reason)
  expect(refusal.message).toBe(message)
}

/** The error that `act` throws, synchronously or not; undefined if it succeeds. */
export async function thrownBy(act: () => unknown): Promise<unknown> {
  try {
    await act()
    return undefined
  } catch (thrown) {
    return thrown
  }
}
