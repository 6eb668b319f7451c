import { Account, Operation, SorobanDataBuilder, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { allowForFirstUse } from '#lib/wallet/first-use.ts'
import { keypair, TOKEN } from './fixtures.ts'

const issuer = keypair('issuer')
const accountOf = (of: typeof issuer) =>
  xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: of.xdrAccountId() }))

/** A call by the issuer whose sequence number has been used `uses` times before. */
function call(uses: bigint) {
  const source = new Account(issuer.publicKey(), ((1234n << 32n) + uses).toString())
  const operation = Operation.invokeContractFunction({ contract: TOKEN, function: 'deposit', args: [] })
  const options = { fee: '100', networkPassphrase: 'test', timebounds: { minTime: 0, maxTime: 0 } }
  return new TransactionBuilder(source, options).addOperation(operation).build()
}

const resources = (readOnly: xdr.LedgerKey[], readWrite: xdr.LedgerKey[]) =>
  new SorobanDataBuilder().setResources(1000, 92, 200).setResourceFee(5000).setFootprint(readOnly, readWrite).build()

test.each([
  ['reads its own account', resources([accountOf(issuer)], []), 0n, { diskReadBytes: 144, writeBytes: 200 }, 5100n],
  ['writes its own account', resources([], [accountOf(issuer)]), 0n, { diskReadBytes: 144, writeBytes: 252 }, 5100n],
  [
    'touches another account',
    resources([accountOf(keypair('x'))], []),
    0n,
    { diskReadBytes: 92, writeBytes: 200 },
    5000n,
  ],
  ['is not the first', resources([], [accountOf(issuer)]), 1n, { diskReadBytes: 92, writeBytes: 200 }, 5000n],
])('the first call of an account: %s', (_, simulated, uses, expected, fee) => {
  const data = allowForFirstUse(simulated, call(uses))
  expect(data.resources).toMatchObject({ instructions: 1000, ...expected })
  expect(data.resourceFee).toBe(fee)
  expect(data.resources.footprint.toXdr('base64')).toBe(simulated.resources.footprint.toXdr('base64'))
})
