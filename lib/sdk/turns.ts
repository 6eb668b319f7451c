/** The part of the Web Locks API that is used; absent in some runtimes. */
interface Locks {
  request<Result>(name: string, options: { signal?: AbortSignal }, work: () => Promise<Result>): Promise<Result>
}

/** The last work of each account in this program, where there are no locks. */
const last = new Map<string, Promise<unknown>>()

/**
 * Does `work` when no other work of the account is in progress, in any tab of this origin: each transfer changes the balance on
 * which the next proof is based. Nested calls for one account would wait for each other.
 * @throws the reason of `signal`, if it is aborted before the turn
 */
export async function inTurn<Result>(
  account: string,
  work: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const { locks } = (globalThis.navigator ?? {}) as { locks?: Locks }
  if (locks) return await locks.request(`confidential-payroll ${account}`, { ...(signal && { signal }) }, work)
  const before = last.get(account) ?? Promise.resolve()
  const begin = async () => {
    signal?.throwIfAborted()
    return await work()
  }
  const own = before.then(begin, begin)
  last.set(account, own)
  return await own
}
