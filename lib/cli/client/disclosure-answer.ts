import { writeFile } from 'node:fs/promises'
import { environment } from '#lib/config/environment.ts'
import type { DiscloserContext } from '#lib/disclosure/answer.ts'
import { discloseBalance } from '#lib/disclosure/balance-disclosure.ts'
import { encodeBundles } from '#lib/disclosure/bundle.ts'
import { DisclosureError } from '#lib/disclosure/disclosure-error.ts'
import { readHistory } from '#lib/disclosure/history.ts'
import { openLedgerSource } from '#lib/disclosure/ledger-source.ts'
import { openDisclosureProver } from '#lib/disclosure/node/prover.ts'
import { type Payment, paymentsIn } from '#lib/disclosure/payment.ts'
import { type Discloser, disclosePayments } from '#lib/disclosure/payment-disclosure.ts'
import { type DisclosureRequest, parseRequest } from '#lib/disclosure/request.ts'
import { formatUnits } from '#lib/text/money.ts'
import { type Balance, syncBalance } from '#lib/wallet/balance.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { printMessage } from '../process/output.ts'
import { describeQuestion, systemRandom } from './disclosure.ts'
import { readForeignFile } from './foreign-file.ts'
import type { ClientNetwork } from './participants.ts'

/** The party that answers a request: an account, or an auditor. */
type Answering = { holder: Pick<Holder, 'address' | 'keys'> } | { auditorSecrets: readonly bigint[] }

/** Answers a request file with a bundle file. Resolves to a summary of the answer. */
export async function answerRequest(
  network: ClientNetwork,
  by: Answering,
  files: { request: string; hash?: string | undefined; out: string },
): Promise<string> {
  const request = parseRequest(await readForeignFile(files.request))
  if (request.network !== network.passphrase || request.token !== network.token) {
    throw new DisclosureError('other-network', 'the request is about another network or another token: see --network')
  }
  const { threads, referenceString } = {
    threads: environment().PROVER_THREADS,
    referenceString: environment().PROVER_CRS,
  }
  const source = openLedgerSource(network.rpc, network.token, network.archives)
  const prover = await openDisclosureProver(request.network, { threads, referenceString }, printMessage)
  const context: DiscloserContext = { source, prover, random: systemRandom }
  try {
    if (request.statement === 'balance') {
      const holder = requireOwnAccount(by, request.account)
      const { spendable } = await readOwnBalance(network, holder)
      const bundle = await discloseBalance(context, request, holder.keys, spendable)
      await writeFile(files.out, encodeBundles([bundle]))
      return `${files.out} discloses ${describeQuestion(request)}`
    }
    const payments = await findPayments(network, source, request, files.hash)
    const disclosed = await disclosePayments(context, request, discloserOf(by), payments)
    await writeFile(files.out, encodeBundles(disclosed.bundles))
    const total = disclosed.payments.reduce((sum, { value }) => sum + value, 0n)
    const proofs = count(disclosed.bundles.length, 'proof')
    const said = `${files.out} discloses ${describeQuestion(request)}: ${count(disclosed.payments.length, 'payment')}, ${formatUnits(total)}, in ${proofs}`
    const { byChannels, toItself } = disclosed
    const leftOut = [
      ...(byChannels > 0
        ? [`${count(byChannels, 'payment')} by channels, which only they can disclose: see wallet authorize-disclosure`]
        : []),
      ...(toItself > 0 ? [`${count(toItself, 'payment')} of the account to itself, which no total includes`] : []),
    ]
    return [said, ...leftOut.map((what) => `without ${what}`)].join('\n')
  } finally {
    await prover.destroy()
  }
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`

function requireOwnAccount(by: Answering, account: string): Pick<Holder, 'address' | 'keys'> {
  if ('holder' in by && by.holder.address === account) return by.holder
  throw new DisclosureError('other-keys', `only ${account} can disclose its balance`)
}

async function readOwnBalance(network: ClientNetwork, holder: Pick<Holder, 'address' | 'keys'>): Promise<Balance> {
  const balance = await syncBalance(network, holder)
  if (balance.receiving.value > 0n) {
    printMessage(`${formatUnits(balance.receiving.value)} is received and not merged: a balance does not include it`)
  }
  return balance
}

/** The payments that a request may be about: those of one transaction, or all of the account's. */
async function findPayments(
  network: ClientNetwork,
  source: ReturnType<typeof openLedgerSource>,
  request: Exclude<DisclosureRequest, { statement: 'balance' }>,
  hash: string | undefined,
): Promise<Payment[]> {
  if (request.statement === 'payment') {
    if (hash === undefined) throw new Error('The request asks for one payment: name its transaction with --hash')
    const events = await source.readTransaction(hash)
    return paymentsIn(events, network.token)
  }
  if (hash !== undefined) throw new Error('The request asks for a total over a period: leave --hash out')
  const { events, completeFrom } = await readHistory(network, request.account)
  if (completeFrom !== undefined && Date.parse(completeFrom) > Date.parse(request.period.from)) {
    printMessage(`payments before ${completeFrom} are missing: neither the RPC nor a named archive has them`)
  }
  const sources = [...new Set(events.map(({ source }) => source))].join(' and ')
  printMessage(
    `payments were read from ${sources || 'the RPC'}, and not compared with balances: wallet statement does that`,
  )
  return paymentsIn(events, network.token)
}

const discloserOf = (by: Answering): Discloser => ('holder' in by ? { keys: by.holder.keys } : by)
