import { Keypair, TransactionBuilder } from '@stellar/stellar-sdk'
import { createPayrollClient, take } from 'confidential-payroll-sdk'
import { announceProofs, openProver } from 'confidential-payroll-sdk/prover'
import {
  buildMerge,
  buildRegister,
  buildTransfer,
  fetchDeployment,
  keypairSigner,
  openDeployment,
  openWallet,
  signIn,
  syncBalance,
} from 'confidential-payroll-sdk/wallet'

/**
 * Pays a contractor from a browser, and says each step. `service` is the origin of the API, `network` the address of a
 * deployment document.
 */
export async function runPayroll(service: string, network: string, say: (step: string) => void): Promise<void> {
  const document = await fetchDeployment(network)
  // Proofs are generated in a worker; the page stays responsive.
  const prover = await openProver()
  const deployment = openDeployment(document, announceProofs(prover, 3, say))

  // Two throwaway wallets: friendbot creates them, then they register with the confidential token, each with a proof.
  // For a wallet extension: openSep43Signer(await import('@stellar/freighter-api'), document.passphrase)
  const employer = await enrol()
  const contractor = await enrol()

  // Sign in: the wallet signs a challenge (SEP-10). The client sends the session from now on.
  let session = ''
  const client = createPayrollClient({ baseUrl: `${service}/api`, session: () => session })
  session = await signIn(client, employer.signer)
  say(`signed in as ${employer.address}`)

  // Import contractors. Rows are independent: `errors` lists the invalid ones.
  const rows = [{ name: 'Ada Lovelace', address: contractor.address }, { name: '' }]
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
  await send((await buildMerge(deployment, employer.signer)).signedXdr)

  // Prove and sign in this page; the service pays the fee.
  const { spendable } = await syncBalance(deployment, employer)
  const transfer = { to: contractor.address, amount: 12_5000000n, opening: spendable }
  const { signedXdr } = await buildTransfer(deployment, employer, transfer)
  const [payout] = payouts
  const body = { signedXDR: signedXdr, ...(payout && { payoutId: payout.id }) }
  const paid = await take(client.POST('/transfer', { body }))
  say(`paid: ${paid.status} ${paid.hash}`)

  const { receiving } = await syncBalance(deployment, contractor)
  say(`the contractor reads ${receiving.value} base units`)
  await prover.destroy()

  async function enrol() {
    const signer = keypairSigner(Keypair.random())
    await deployment.rpc.fundAddress(signer.address)
    const holder = await openWallet(signer, deployment.token)
    await send((await buildRegister(deployment, holder, { auditorId: document.auditor.id })).signedXdr)
    return holder
  }

  async function send(envelope: string) {
    const { hash } = await deployment.rpc.sendTransaction(TransactionBuilder.fromXdr(envelope, deployment.passphrase))
    await deployment.rpc.pollTransaction(hash, { attempts: 60 })
  }
}
