import { Keypair } from '@stellar/stellar-sdk'
import { createPayrollClient, take } from 'confidential-payroll-sdk'
import {
  createRequest,
  disclosePayments,
  disclosureFiles,
  drawRequesterKey,
  openDisclosureProver,
  openLedgerSource,
  paymentsIn,
  verifyDisclosure,
} from 'confidential-payroll-sdk/disclosure'
import { announceProofs, openProver } from 'confidential-payroll-sdk/prover'
import {
  buildMerge,
  buildRegister,
  buildTransfer,
  encryptForSelf,
  fetchDeployment,
  keypairSigner,
  matchPayees,
  openDeployment,
  openNotes,
  openWallet,
  runBatch,
  signIn,
  storedNotes,
  syncBalance,
} from 'confidential-payroll-sdk/wallet'

/** Reports a step, with an address to show. */
export type Say = (step: string, link?: string) => void

/**
 * Pays contractors from a browser, and reports each step. `origin` is that of the API, `deploymentUrl` the address of the
 * network's deployment document.
 */
export async function runPayroll(origin: string, deploymentUrl: string, say: Say): Promise<void> {
  const document = await fetchDeployment(deploymentUrl)
  // Proofs are generated in a worker; the page stays responsive.
  const prover = await openProver()
  const deployment = openDeployment(document, announceProofs(prover, 4, say))

  // Two throwaway wallets: friendbot creates the accounts, which then sign in and register with the confidential token.
  // For a wallet extension: openSep43Signer(await import('@stellar/freighter-api'), document.passphrase)
  const { holder: employer, client } = await enrol()
  const { holder: contractor } = await enrol()
  say(`signed in as ${employer.address}`)

  // Import contractors. Rows are independent: `errors` lists the invalid ones.
  const rows = [{ name: 'Ada Lovelace', address: contractor.address }, { name: 'Grace Hopper' }, { name: '' }]
  const { imported, errors } = await take(client.POST('/contractors/bulk', { body: { rows } }))
  say(`imported ${imported.length}, refused row ${errors[0]?.row}: ${errors[0]?.reason}`)

  // Invite the contractor without an address: accepting with a wallet adds its account.
  const [ada, grace] = imported
  if (!ada || !grace) throw new Error('the import refused a contractor')
  const { inviteUrl } = await take(client.POST('/contractors/{id}/invite', { params: { path: { id: grace.id } } }))
  say(`invited ${grace.name}`, inviteUrl)

  // Create and lock a batch with one payout. Only this account can read the encrypted amount.
  const { id } = await take(client.POST('/batches', { body: { name: 'March' } }))
  const path = { id }
  const encryptedAmount = await encryptForSelf(employer, { batch: id, contractor: ada.id }, 12_5000000n)
  const instructions = [{ contractorId: ada.id, encryptedAmount }]
  const { payouts } = await take(
    client.POST('/batches/{id}/instructions', { params: { path }, body: { instructions } }),
  )
  await take(client.POST('/batches/{id}/ready', { params: { path } }))
  say(`locked a batch of ${payouts.length}`)

  // Request test USDC; a merge makes it spendable.
  await take(client.POST('/funding/faucet'))
  const merge = await buildMerge(deployment, employer.signer)
  await take(client.POST('/calls', { body: { signedXDR: merge.signedXdr } }))

  // Prove and sign in this page; the service pays the fee. The payment is marked with its payout, which only this account's
  // viewing key can read from the ledger.
  const { spendable } = await syncBalance(deployment, employer)
  const [payout] = payouts
  if (!payout) throw new Error('the batch has no payout')
  // What this employer knows without the service. It has no amounts.
  const notes = openNotes(employer, storedNotes(localStorage))
  notes.addPayouts([{ batch: id, address: contractor.address, payout: payout.id, at: new Date().toISOString() }])
  const transfer = { to: contractor.address, amount: 12_5000000n, opening: spendable, purpose: payout.id }
  const { signedXdr } = await buildTransfer(deployment, employer, transfer)
  const body = { signedXDR: signedXdr, payoutId: payout.id }
  const paid = await take(client.POST('/transfer', { body }))
  say(`paid: ${paid.status} ${paid.hash}`)

  // The relay pays another batch. This page seals the amounts, delegates an escrow, signs the manifest and follows the
  // run, which continues even if the page is closed. A second call continues it, and neither pays nor delegates twice.
  // It believes the ledger, its notes and this list of addresses, not the service. The rest of the escrow is revoked.
  const april = await take(client.POST('/batches', { body: { name: 'April' } }))
  const run = await runBatch({
    deployment,
    client,
    holder: employer,
    relay: document.relay,
    batch: april.id,
    payees: await matchPayees(client, [{ contractor: contractor.address, amount: 3_0000000n }], notes),
    notes,
    channels: 1,
    revokes: true,
    say,
  })
  say(`the relay paid ${run.paid} of ${run.payouts}`)

  const { receiving } = await syncBalance(deployment, contractor)
  say(`the contractor reads ${receiving.value} base units`)
  await prover.destroy()

  // A bank asks the contractor about one payment. The answer proves the amount to the bank only.
  const random = (size: number) => crypto.getRandomValues(new Uint8Array(size))
  const secret = drawRequesterKey(random)
  const { passphrase: network, contracts } = document
  const question = { network, token: contracts.token, account: contractor.address } as const
  const request = createRequest(secret, { ...question, statement: 'payment', role: 'recipient' }, random)
  if (request.statement !== 'payment') throw new Error('the request asks for one payment')
  const source = openLedgerSource(deployment.rpc, contracts.token)
  const payments = paymentsIn(await source.readTransaction(paid.hash), contracts.token)
  const discloser = openDisclosureProver(network)
  const { bundles } = await disclosePayments({ source, prover: discloser, random }, request, contractor, payments)
  const verified = await verifyDisclosure({ source, files: disclosureFiles }, { request, secret, bundles })
  say(`the bank has verified ${verified.value} base units`)
  await discloser.destroy()

  /** Signs in: the wallet signs a challenge (SEP-10). The service pays the fees, including the registration's. */
  async function enrol() {
    const signer = keypairSigner(Keypair.random())
    await deployment.rpc.fundAddress(signer.address)
    let session = ''
    const client = createPayrollClient({ baseUrl: `${origin}/api`, session: () => session })
    session = await signIn(client, signer)
    const holder = await openWallet(signer, deployment.token)
    const { signedXdr } = await buildRegister(deployment, holder, { auditorId: document.auditor.id })
    await take(client.POST('/calls', { body: { signedXDR: signedXdr } }))
    return { holder, client }
  }
}
