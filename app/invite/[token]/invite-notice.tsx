import type { CSSProperties } from 'react'
import type { OpenInvite } from '#lib/directory/invites/invites.ts'

const column: CSSProperties = { maxWidth: '36rem', margin: '0 auto', padding: '1rem', font: '1rem/1.6 system-ui' }
const code: CSSProperties = { overflowX: 'auto', padding: '0.75rem', background: '#f3f3f3', color: '#111' }

/** What an invite says, and how to accept it. `acceptUrl` is where the acceptance is posted. */
export function InviteNotice({ invite, acceptUrl }: { invite: OpenInvite; acceptUrl: string }) {
  const lastDay = invite.expiresAt.toISOString()
  return (
    <main style={column}>
      <h1 style={{ overflowWrap: 'anywhere' }}>{invite.company} invites you</h1>
      <p>
        You are asked to be paid as a contractor. The invite can be accepted once, until{' '}
        <time dateTime={lastDay}>{lastDay.slice(0, 10)}</time>.
      </p>
      <h2>How to accept</h2>
      <ol>
        <li>Sign in to this service with your wallet or your email, in the application that you use for it.</li>
        <li>If the invite was made for your email or your wallet, the application shows it: accept it there.</li>
        <li>Without such an application, send this with your session:</li>
      </ol>
      <pre style={code}>
        <code>{`curl -X POST ${acceptUrl} -H "Authorization: Bearer $SESSION"`}</code>
      </pre>
      <p>If you did not expect this, close the page: nothing happens unless you accept.</p>
    </main>
  )
}

/** What is said of a link that opens nothing. */
export function VoidInviteNotice() {
  return (
    <main style={column}>
      <h1>This invite does not hold any more</h1>
      <p>It has been accepted, replaced by a newer one, or has expired. Ask whoever invited you for another.</p>
    </main>
  )
}
