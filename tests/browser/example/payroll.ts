import { Keypair, rpc, TransactionBuilder } from '@stellar/stellar-sdk'
import { createPayrollClient, take } from '#lib/sdk/payroll-client.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge, buildRegister, buildTransfer } from '#lib/wallet/calls.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { openBrowserProver } from './prover.ts'

/** Pays a contractor from a browser. `baseUrl` is the API; `deploymentUrl` describes the embedded ledger. */
export async function runPayroll(baseUrl: string, deploymentUrl: string, say: (step: string) => void): Promise<void> {
  const { rpcUrl, passphrase, contracts, auditor } = await (await fetch(deploymentUrl)).json()
  const server = new rpc.Server(rpcUrl, { allowHttp: true })
  const prover = await openBrowserProver()
  const network = { rpc: server, passphrase, token: contracts.token, auditor: contracts.auditor, prover }

  // Create two wallets: friendbot sends XLM, then they register with the confidential token, each with a proof.
  const employer = await enrol()
  const contractor = await enrol()
  say('registered two wallets')

  // Sign in: the wallet signs a challenge (SEP-10). The client sends the session from now on.
  let session: string | undefined
  const client = createPayrollClient({ baseUrl, session: () => session })
  const query = { account: employer.signer.publicKey() }
  const challenge = await take(client.GET('/auth/sep10/challenge', { params: { query } }))
  const login = TransactionBuilder.fromXdr(challenge.transaction, challenge.network_passphrase)
  login.sign(employer.signer)
  const signedIn = await take(client.POST('/auth/sep10/verify', { body: { transaction: login.toXdr() } }))
  session = signedIn.session
  say(`signed in as ${signedIn.sub}`)

  // Import contractors. Rows are independent: `errors` lists the invalid ones.
  const rows = [{ name: 'Ada Lovelace', address: contractor.signer.publicKey() }, { name: '' }]
  const { imported, errors } = await take(client.POST('/contractors/bulk', { body: { rows } }))
  say(`imported ${imported.length}, refused row ${errors[0]?.row}: ${errors[0]?.reason}`)

  // Create and lock a batch with one payout. The service cannot read the encrypted amount.
  const { id } = await take(client.POST('/batches', { body: { name: 'March' } }))
  const path = { id }
  const instructions = imported.map((ada) => ({ contractorId: ada.id, encryptedAmount: 'c2VhbGVk' }))
  const { payouts } = await take(
    client.POST('/batches/{id}/instructions', { params: { path }, body: { instructions } }),
  )
  await take(client.POST('/batches/{id}/ready', { params: { path } }))
  say(`locked a batch of ${payouts.length}`)

  // Request test USDC; a merge makes it spendable.
  await take(client.POST('/funding/faucet'))
  await submit((await buildMerge(network, employer.signer)).signedXdr)

  // Prove and sign in this page; the service pays the fee.
  const { spendable } = await balanceOf(employer)
  const to = contractor.signer.publicKey()
  const { signedXdr } = await buildTransfer(network, employer, { to, amount: 12_5000000n, opening: spendable })
  say('proved the transfer')
  const [payout] = payouts
  const paid = await take(
    client.POST('/transfer', { body: { signedXDR: signedXdr, ...(payout && { payoutId: payout.id }) } }),
  )
  say(`paid: ${paid.status} ${paid.hash}`)

  // Poll until the batch has finished.
  for (;;) {
    const { status, settledCount, payoutCount } = await take(client.GET('/batches/{id}/status', { params: { path } }))
    if (status === 'completed' || status === 'failed') {
      say(`the batch is ${status}: ${settledCount} of ${payoutCount} paid`)
      break
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
  say(`the contractor reads ${(await balanceOf(contractor)).receiving.value} base units`)
  await prover.destroy()

  async function enrol() {
    const signer = Keypair.random()
    await server.fundAddress(signer.publicKey())
    const holder = openHolder(signer, network.token)
    await submit((await buildRegister(network, holder, { auditorId: auditor.id })).signedXdr)
    return holder
  }

  function balanceOf(holder: Awaited<ReturnType<typeof enrol>>) {
    return syncBalance(network, holder)
  }

  async function submit(signed: string) {
    const { hash } = await server.sendTransaction(TransactionBuilder.fromXdr(signed, passphrase))
    await server.pollTransaction(hash, { attempts: 60 })
  }
}
