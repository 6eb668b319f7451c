import { Keypair } from '@stellar/stellar-sdk'
import { createPayrollClient, take } from 'confidential-payroll-sdk'
import { openProver } from 'confidential-payroll-sdk/prover'
import * as wallet from 'confidential-payroll-sdk/wallet'
import { useActionState, useState } from 'react'
import { createRoot } from 'react-dom/client'

const { searchParams } = new URL(location.href)
const service = searchParams.get('service') ?? 'http://localhost:3000'
const network = searchParams.get('network') ?? 'http://localhost:8000/deployment.json'

/** Signs in. The first time, it also registers the account with the token, and requests test USDC. */
async function connect() {
  const document = await wallet.fetchDeployment(network)
  const deployment = wallet.openDeployment(document, await openProver())
  // A throwaway key. For a wallet: openSep43Signer(await import('@stellar/freighter-api'), document.passphrase)
  localStorage.secret ??= Keypair.random().secret()
  const signer = wallet.keypairSigner(Keypair.fromSecret(localStorage.secret))
  let session = ''
  const client = createPayrollClient({
    baseUrl: `${service}/api`,
    session: () => session,
    renew: async () => {
      session = await wallet.signIn(client, signer)
    },
  })
  const holder = await wallet.openWallet(signer, deployment.token)
  if (!(await wallet.readConfidentialAccount(deployment.rpc, deployment.token, holder.address))) {
    await deployment.rpc.fundAddress(holder.address)
    const { signedXdr } = await wallet.buildRegister(deployment, holder, { auditorId: document.auditor.id })
    await take(client.POST('/calls', { body: { signedXDR: signedXdr } }))
    await take(client.POST('/funding/faucet'))
  }
  return { client, deployment, holder, notes: wallet.openNotes(holder, wallet.storedNotes(localStorage)) }
}

type Employer = Awaited<ReturnType<typeof connect>>

/** Pays a list with a name, an address and an amount in each line. After an interruption, it continues the same batch. */
async function pay(employer: Employer, list: string, progress: (progress: wallet.BatchProgress) => void) {
  const { client, notes } = employer
  const rows = list.split('\n').flatMap((line) => {
    const [name = '', address = '', amount = ''] = line.split(',').map((cell) => cell.trim())
    return name ? [{ name, address, contractor: address, amount: wallet.parseAmount(amount) }] : []
  })
  // Contractors who are there already are among the errors.
  const contractors = rows.map(({ name, address }) => ({ name, address }))
  await take(client.POST('/contractors/bulk', { body: { rows: contractors } }))
  const payees = await wallet.matchPayees(client, rows, notes)
  localStorage.batch ??= (await take(client.POST('/batches', { body: { name: new Date().toISOString() } }))).id
  await wallet.payBatch({ ...employer, batch: localStorage.batch, payees, progress, say: console.log })
  localStorage.removeItem('batch')
}

function Payroll() {
  const [progress, setProgress] = useState<wallet.BatchProgress>()
  const [lines, setLines] = useState<wallet.StatementLine[]>([])
  const [outcome, submit, isPaying] = useActionState(async (_: string, form: FormData) => {
    localStorage.list = form.get('list')
    try {
      const employer = await connect()
      await pay(employer, localStorage.list, setProgress)
      setLines((await wallet.readStatement(employer.deployment, employer.holder)).lines)
      return 'Everyone is paid.'
    } catch (error) {
      return String(error)
    }
  }, '')
  return (
    <main>
      <h1>Payroll</h1>
      <form action={submit}>
        <label htmlFor="list">Name, address and amount, one payee a line</label>
        <textarea id="list" name="list" rows={6} required defaultValue={localStorage.list} />
        <button type="submit" disabled={isPaying}>
          Pay
        </button>
      </form>
      {isPaying && <progress aria-label="Paid" value={progress?.done ?? 0} max={progress?.of ?? 1} />}
      <p role="status">{isPaying ? `${progress?.step ?? 'connecting'}…` : outcome}</p>
      <ul aria-label="Statement">
        {lines.map(({ transaction, date, direction, counterparty, amount }) => (
          <li key={transaction}>
            {date.slice(0, 10)} {direction} {amount !== undefined && wallet.formatAmount(amount)} {counterparty}
          </li>
        ))}
      </ul>
    </main>
  )
}

createRoot(document.querySelector('#root') as Element).render(<Payroll />)
