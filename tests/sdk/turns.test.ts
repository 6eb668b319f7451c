import { afterEach, expect, test, vi } from 'vitest'
import { inTurn } from '#lib/sdk/turns.ts'

afterEach(() => vi.unstubAllGlobals())

/** Works that note when they begin and end, of an account each. */
async function orderOf(...accounts: string[]): Promise<string[]> {
  const order: string[] = []
  const work = async (name: string) => {
    order.push(`${name} begins`)
    await new Promise((resolve) => setTimeout(resolve, 5))
    order.push(`${name} ends`)
    if (name === 'GA 0') throw new Error('refused')
  }
  await Promise.allSettled(accounts.map((account, index) => inTurn(account, () => work(`${account} ${index}`))))
  return order
}

test.each([
  ['with the locks of the runtime', undefined],
  ['without locks', {}],
])('works of one account take turns, also after a failure, %s', async (_, navigator) => {
  if (navigator) vi.stubGlobal('navigator', navigator)
  expect(await orderOf('GA', 'GA')).toEqual(['GA 0 begins', 'GA 0 ends', 'GA 1 begins', 'GA 1 ends'])
  expect((await orderOf('GB', 'GC')).slice(0, 2)).toEqual(['GB 0 begins', 'GC 1 begins'])
  const leaving = new AbortController()
  const first = inTurn('GD', () => new Promise((resolve) => setTimeout(resolve, 5)))
  const second = inTurn('GD', async () => 'done', leaving.signal)
  leaving.abort(new Error('left'))
  await expect(second).rejects.toThrow('left')
  await first
})
