import { Keypair } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { delegationCommands } from '#lib/cli/client/delegation-commands.ts'

const commands = delegationCommands({
  signerOf: () => Keypair.random(),
  proving: () => Promise.reject(new Error('nothing is proved here')),
})
const given = { network: 'http://ledger.test/deployment.json', service: 'http://payroll.test', batch: 'a batch' }

test.each([
  ['without a list', {}, /--amounts/],
  ['unchecked beside a list', { unchecked: true, amounts: 'amounts.csv' }, /leave --amounts out/],
])('signs no manifest %s', async (_, options, message) => {
  await expect(commands.manifest?.({ ...given, ...options })).rejects.toThrow(message)
})
