/** The part of the Web Locks API that is used; absent in some runtimes. */
interface Locks {
  request<Result>(name: string, work: () => Promise<Result>): Promise<Result>
}

/** The last work of each account in this program, where there are no locks. */
const last = new Map<string, Promise<unknown>>()

/**
 * Does `work` when no other work of the account is in progress, in any tab of this origin: each transfer changes the balance on
 * which the next proof is based. Nested calls for one account would wait for each other.
 */
export async function inTurn<Result>(account: string, work: () => Promise<Result>): Promise<Result> {
  const { locks } = (globalThis.navigator ?? {}) as { locks?: Locks }
  if (locks) return await locks.request(`confidential-payroll ${account}`, work)
  const before = last.get(account) ?? Promise.resolve()
  const own = before.then(work, work)
  last.set(account, own)
  return await own
}
