import { Keypair } from '@stellar/stellar-sdk'
import { environment } from '#lib/config/environment.ts'
import { readLatestLedger } from '#lib/disclosure/ledger-event.ts'
import { loadProver, proverSettings } from '#lib/prover/node/loading.ts'
import { announceProofs } from '#lib/prover/progress.ts'
import { openNotes } from '#lib/sdk/own-notes.ts'
import { requireUnpaid } from '#lib/sdk/paid-payouts.ts'
import { readBatch } from '#lib/sdk/payees.ts'
import { PayrollError } from '#lib/sdk/payroll-client.ts'
import { RunError } from '#lib/sdk/run-error.ts'
import { finishSignIn } from '#lib/sdk/sign-in.ts'
import { sponsorCall } from '#lib/sdk/sponsored-call.ts'
import { reachLedger } from '#lib/stellar/ledger-error.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import { ledgerOfBalance, syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge, buildTransfer, buildWithdraw } from '#lib/wallet/calls.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'
import { MAX_RESOURCE_FEE, type SubmitCall } from '#lib/wallet/transaction.ts'
import { APPROVAL_OPTIONS, APPROVAL_USAGE, approvalCommands } from './client/approval-commands.ts'
import { authorize } from './client/delegated-disclosure.ts'
import { DELEGATION_OPTIONS, DELEGATION_USAGE, delegationCommands, notesOf } from './client/delegation-commands.ts'
import { describeMoment, explainDisclosure } from './client/disclosure.ts'
import { answerRequest } from './client/disclosure-answer.ts'
import { NETWORK_OPTIONS, NETWORK_USAGE, openNetworkOf } from './client/network-options.ts'
import { type ClientNetwork, enrol, registerHolder, requireFriendbot, sendAndWait } from './client/participants.ts'
import { makeStatement } from './client/statements.ts'
import { connect, connectWallet, homeOf, signInWithWallet } from './client/wallet-session.ts'
import { need, type Outcome, runCommands, type Values } from './process/command.ts'
import { print, printMessage } from './process/output.ts'

const USAGE = `Usage: npm run -s wallet -- <command> [options]

  new                                   a new account, funded and registered; prints its secret key
  register --secret S…                  registers your own account with the token; the service pays the fee
  address  --secret S…                  its G-address
  session  --secret S…                  signs in with SEP-10; prints the session token. With --signed-xdr, exchanges a challenge
                                        that its signers have signed
  balance  --secret S…                  what it can spend, and what it has received and not merged (test USDC)
  merge    --secret S…                  makes what it has received spendable
  transfer --secret S… --to G… --amount 12.5 [--batch … --payout …]
                                        builds and signs a confidential transfer; prints the signedXDR, sends nothing.
                                        With --payout, marks and notes the payment; refuses a payout that is already paid
  withdraw --secret S… --to G… --amount 12.5
                                        takes an amount out into the open, to an account that trusts the asset
  disclose --secret S… --request request.json [--hash …] --out bundle.json
                                        answers a request to disclose a payment, a total or the balance (docs/disclosure.md)
  authorize-disclosure --secret S… --request request.json --hash … --spender G…
                                        lets the channel that paid from a delegation disclose these payments; prints the
                                        signature for npm run relay -- disclose
  statement --secret S… [--from 2026-01-01] [--to 2026-07-01] [--format table|csv|json|html] [--session …]
                                        every payment received and sent; --to is excluded, and a session adds the names of
                                        its contractors
${DELEGATION_USAGE}
${APPROVAL_USAGE}
  --max-fee XLM   the maximum resource fee of a call (${formatUnits(MAX_RESOURCE_FEE)}); a call that needs more is not signed
  --service URL   the payroll service (${environment().PUBLIC_URL}, from PUBLIC_URL or PORT)
  --home-domain HOST
                  the service's home domain (SEP-10), if --service names another address of it
${NETWORK_USAGE}`

const OPTIONS = {
  secret: { type: 'string' },
  to: { type: 'string' },
  amount: { type: 'string' },
  payout: { type: 'string' },
  request: { type: 'string' },
  hash: { type: 'string', multiple: true },
  out: { type: 'string' },
  from: { type: 'string' },
  format: { type: 'string' },
  session: { type: 'string' },
  ...DELEGATION_OPTIONS,
  ...APPROVAL_OPTIONS,
  'home-domain': { type: 'string' },
  'max-fee': { type: 'string' },
  service: { type: 'string', default: environment().PUBLIC_URL },
  ...NETWORK_OPTIONS,
} as const

type Given = Values<typeof OPTIONS>

/** The client side on the command line: keys and amounts stay in this process. */
const COMMANDS: Record<string, (given: Given) => Promise<string | Outcome>> = {
  ...delegationCommands({ signerOf, proving }),
  ...approvalCommands({ signerOf }),
  new: (given) =>
    proving(given, async (network) => {
      const signer = Keypair.random()
      // Before anything can fail: what the account has by then would be lost with its secret.
      print(signer.secret())
      await enrol(requireFriendbot(network), signer, sponsored(given, network, signer))
      return ''
    }),
  register: (given) =>
    proving(given, async (network) => {
      const signer = signerOf(given)
      await registerHolder(network, signer, sponsored(given, network, signer))
      return `${signer.publicKey()} is registered: it can be paid`
    }),
  address: async (given) => signerOf(given).publicKey(),
  session: async (given) => {
    const challenge = given['signed-xdr']
    if (challenge !== undefined) return await finishSignIn(connect(given.service), challenge)
    return await signInWithWallet(given.service, signerOf(given), homeOf(given))
  },
  balance: async (given) => {
    const signer = signerOf(given)
    const network = await openNetworkOf(given)
    const latest = await reachLedger(readLatestLedger(network.rpc))
    const { spendable, receiving } = await syncBalance(network, openHolder(signer, network.token))
    const balances = `spendable ${formatUnits(spendable.value)}  received ${formatUnits(receiving.value)}`
    return `${balances}\n${describeMoment(latest)}`
  },
  merge: async (given) => {
    const signer = signerOf(given)
    const network = await openNetworkOf(given)
    await sponsored(given, network, signer)((await buildMerge(network, signer)).signedXdr)
    return 'done'
  },
  transfer: (given) =>
    spending(given, async (network, holder, payment, ledger) => {
      const { payout } = given
      if (payout === undefined) return (await buildTransfer(network, holder, payment)).signedXdr
      const batch = need(given, 'batch')
      const { payouts } = await readBatch(await connectWallet(given.service, holder.signer, homeOf(given)), batch)
      const found = payouts.find(({ id, address }) => id === payout && address === payment.to)
      if (!found) throw new RunError('list-differs', `batch ${batch} has no payout ${payout} to ${payment.to}`)
      const { status } = found
      // A payment in flight is not on the ledger yet.
      if (status !== 'ready' && status !== 'failed') throw new RunError('not-started', `payout ${payout} is ${status}`)
      const payee = { contractor: found.contractorId, address: payment.to, amount: payment.amount }
      await requireUnpaid(
        {
          ...{ deployment: network, holder, batch, payees: [payee], notes: openNotes(holder, notesOf(given)) },
          ...{ assumesUnpaid: given['assume-unpaid'] ?? false, say: printMessage },
        },
        found,
        ledger,
      )
      return (await buildTransfer(network, holder, { ...payment, purpose: payout })).signedXdr
    }),
  withdraw: (given) =>
    spending(given, async (network, holder, payment) =>
      send(network, (await buildWithdraw(network, holder, payment)).signedXdr),
    ),
  disclose: async (given) => {
    const [hash, ...more] = given.hash ?? []
    if (more.length > 0) throw new Error('A request asks for one payment or for a total: give one --hash at most')
    const files = { request: need(given, 'request'), out: need(given, 'out'), hash }
    const signer = signerOf(given)
    const network = await openNetworkOf(given)
    return await answerRequest(network, { holder: openHolder(signer, network.token) }, files)
  },
  'authorize-disclosure': async (given) => {
    const files = { request: need(given, 'request'), spender: need(given, 'spender'), hashes: given.hash ?? [] }
    const signer = signerOf(given)
    return await authorize(await openNetworkOf(given), signer, files)
  },
  statement: async (given) => {
    const signer = signerOf(given)
    const network = await openNetworkOf(given)
    const { service, session } = given
    const directory = session === undefined ? undefined : { service, session }
    return await makeStatement(network, openHolder(signer, network.token), given, directory)
  },
}

/**
 * Runs a command that generates a proof. Configuration errors are found before any request to the network. Messages about
 * proofs go to standard error, so that standard output contains only the result.
 */
async function proving(given: Given, command: (network: ClientNetwork) => Promise<string>): Promise<string> {
  const prover = await loadProver(proverSettings(environment()), printMessage)
  try {
    return await command(await openNetworkOf(given, announceProofs(prover, 1, printMessage)))
  } finally {
    await prover.destroy?.()
  }
}

/** Runs a command that pays from the balance of --secret, which is read through `ledger`. */
function spending(
  given: Given,
  command: (network: ClientNetwork, holder: Holder, payment: Payment, ledger: number) => Promise<string>,
): Promise<string> {
  const signer = signerOf(given)
  return proving(given, async (network) => {
    const holder = openHolder(signer, network.token)
    const balance = await syncBalance(network, holder)
    const payment = { to: need(given, 'to'), amount: parseUnits(need(given, 'amount')), opening: balance.spendable }
    return await command(network, holder, payment, ledgerOfBalance(balance))
  })
}

type Payment = Parameters<typeof buildTransfer>[2]

/** Submits calls through the service, or at the account's own cost if the service sponsors none. */
function sponsored(given: Given, network: ClientNetwork, signer: Keypair): SubmitCall {
  return async (signedXdr) => {
    try {
      return await sponsorCall(await connectWallet(given.service, signer, homeOf(given)), signedXdr, network.rpc)
    } catch (error) {
      // The account pays the fee itself only if there is no service, or if it sponsors no calls.
      const { code, status } = error instanceof PayrollError ? error : {}
      if (code !== 'network' && status !== 501) throw error
      const reason = code === 'network' ? 'no service responds' : 'the service sponsors no calls'
      printMessage(`${reason}: the account pays the fee itself`)
      return await sendAndWait(network, signedXdr)
    }
  }
}

function signerOf(given: Given): Keypair {
  return Keypair.fromSecret(need(given, 'secret'))
}

async function send(network: ClientNetwork, signedXdr: string): Promise<string> {
  await sendAndWait(network, signedXdr)
  return 'done'
}

await runCommands({
  usage: USAGE,
  options: OPTIONS,
  explain: (error, { network, service }) => {
    const isBroken = error instanceof PayrollError && error.code === 'network'
    if (!isBroken) return explainDisclosure(error)
    return `${error.message}\nNothing answers at ${network} or ${service}: --network and --service name others.`
  },
  commands: COMMANDS,
})
