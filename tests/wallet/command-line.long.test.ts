import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const wallet = (...args: string[]) => run(process.execPath, ['lib/cli/wallet.ts', ...args])

test.each([[[]], [['bogus']]])('lists the commands if none matches %j', async (args) => {
  await expect(wallet(...args)).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^Usage: /) })
})

test('the wallet command names the missing option', async () => {
  await expect(wallet('address')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^--secret is missing/),
  })
})
