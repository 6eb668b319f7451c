import { expect } from 'vitest'
import { type RefusalReason, SponsorRefusal, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'

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

/** Runs `act`, which must refuse for exactly `reason`, or succeed if there is none. */
export const expectVerdict = async (act: () => unknown, reason: RefusalReason | undefined): Promise<unknown> =>
  reason ? await expectRefusal(act, reason) : await act()

/** Runs `act`, which must find the ledger unavailable. */
export async function expectUnavailable(act: () => unknown): Promise<void> {
  const thrown = await thrownBy(act)
  if (!(thrown instanceof LedgerError)) throw thrown ?? new Error('nothing was thrown')
  expect(thrown.code).toBe('unavailable')
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
