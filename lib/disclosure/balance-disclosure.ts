import { equalBytes } from '@noble/curves/utils.js'
import { checkBlinding, type Opening, opens } from '#lib/wallet/commitment.ts'
import type { ConfidentialKeys } from '#lib/wallet/keys.ts'
import { type DiscloserContext, notRegistered, otherKeys, proveAnswer } from './answer.ts'
import type { Bundle } from './bundle.ts'
import { circuitsFor, type DisclosureRequest } from './request.ts'

type BalanceRequest = Extract<DisclosureRequest, { statement: 'balance' }>

/**
 * Answers a request about the spendable balance, whose opening the wallet has just rebuilt.
 * @throws DisclosureError `not-true` for a threshold that the balance does not meet, `other-keys`; WalletError
 *   `unspendable`
 */
export async function discloseBalance(
  context: DiscloserContext,
  request: BalanceRequest,
  keys: Pick<ConfidentialKeys, 'sk' | 'viewingKey'>,
  spendable: Opening,
): Promise<Bundle> {
  checkBlinding(spendable)
  const account = (await context.source.readAccounts([request.account])).get(request.account)
  if (!account) throw notRegistered(request.account)
  const isOwn = equalBytes(account.viewingKey, keys.viewingKey) && opens(spendable, account.spendable)
  if (!isOwn) throw otherKeys(request.account)
  const [circuit] = circuitsFor(request)
  if (!circuit) throw new Error('no circuit answers the request')
  const { value, blinding } = spendable
  const secrets = { sk: keys.sk, v: value, r: blinding }
  const statement = { circuit, token: request.token, key: account.viewingKey, spendable: account.spendable }
  const { proof, sealed } = await proveAnswer(
    context,
    request,
    { ...statement, payments: [], viewingKeys: new Map() },
    { secrets, value },
  )
  return { circuit: circuit.name, events: [], proof, sealed }
}
