import { Keypair } from '@stellar/stellar-sdk'
import { createPayrollClient } from 'confidential-payroll-sdk'
import { openProver } from 'confidential-payroll-sdk/prover'
import * as wallet from 'confidential-payroll-sdk/wallet'
import { useActionState, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'

const query = new URLSearchParams(location.search)
const service = query.get('service') ?? 'http://localhost:3000'
const network = query.get('network') ?? 'http://localhost:8000/deployment.json'

// A throwaway key. For a wallet: openSep43Signer(await import('@stellar/freighter-api'), document.passphrase)
localStorage.secret ??= Keypair.random().secret()
const signer = wallet.keypairSigner(Keypair.fromSecret(localStorage.secret))

/** Signs a run if it pays exactly this list: an address and an amount on each line. */
async function approve(form: FormData): Promise<string> {
  const [account = '', batch = '', list = '', handed = ''] = ['account', 'batch', 'list', 'amounts'].map((name) =>
    String(form.get(name)).trim(),
  )
  const payees = list.split(/\s*\n\s*/).map((line) => {
    const [address = '', amount = ''] = line.split(',').map((cell) => cell.trim())
    return { address, amount: wallet.parseAmount(amount) }
  })
  const seals = await wallet.readHandedOver(await wallet.approvalKey(signer), batch, handed)
  // Take the relay from the deployment document, not from the service.
  const document = await wallet.fetchDeployment(network)
  const deployment = wallet.openDeployment(document, await openProver())
  let session = ''
  const client = createPayrollClient({ baseUrl: `${service}/api`, session: () => session })
  session = await wallet.signIn(client, signer)
  const { relay } = document
  const approved = await wallet.approveRun({ client, deployment, signer, account, batch, payees, seals, relay })
  return approved.started ? 'The run has started.' : `Signed: weight ${approved.weight} of ${approved.needed}.`
}

function Approval() {
  const [key, setKey] = useState('')
  useEffect(() => {
    wallet.nameApprovalKey(signer).then((own) => setKey(JSON.stringify(own)))
  }, [])
  const [outcome, submit, isBusy] = useActionState(
    (_: string, form: FormData) => approve(form).catch((error: unknown) => String(error)),
    '',
  )
  return (
    <main>
      <h1>Approve a run</h1>
      <p>
        You are <code>{signer.address}</code>. Give your key to the person who prepares the run, who encrypts the
        amounts to it:
      </p>
      <input aria-label="Your key" readOnly value={key} />
      <form action={submit}>
        <label>
          The account that pays <input name="account" required />
        </label>
        <label>
          Batch <input name="batch" required />
        </label>
        <label>
          Your list: address and amount, one payee a line <textarea name="list" rows={6} required />
        </label>
        <label>
          The amounts that you were given <textarea name="amounts" rows={6} required />
        </label>
        <button type="submit" disabled={isBusy}>
          Compare and sign
        </button>
      </form>
      <p role="status">{isBusy ? 'comparing…' : outcome}</p>
    </main>
  )
}

createRoot(document.querySelector('#root') as Element).render(<Approval />)
