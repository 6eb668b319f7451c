import type { Metadata } from 'next'
import { redirect } from 'next/navigation'
import { connection } from 'next/server'
import { readQuery } from '#app/(operator)/query.ts'
import { hasStarted } from '#app/(operator)/require-operator.ts'
import { BrandMark } from '#app/brand-mark.tsx'
import { service } from '#lib/server/services.ts'

export const metadata: Metadata = { title: 'Sign in', robots: { index: false } }

/** The operator's sign-in to the dashboard. */
export default async function SignInPage({ searchParams }: PageProps<'/sign-in'>) {
  await connection()
  if (!(await hasStarted())) redirect('/')
  const { settings } = await service()
  const { problem = '', seconds = '', to = '', name = '' } = await readQuery(searchParams)
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center px-6 py-12">
      <p className="mb-8 flex items-center gap-2.5 font-medium">
        <BrandMark />
        Confidential payroll
      </p>
      <h1 className="text-2xl font-semibold tracking-tight">Operator dashboard</h1>
      {settings.operator ? (
        <SignInForm message={messageOf(problem, seconds)} problem={problem} name={name} to={to} />
      ) : (
        <Closed />
      )}
    </main>
  )
}

/** The problems that mark the field as invalid. The notice after signing out is not an error. */
const PROBLEMS: ReadonlySet<string> = new Set(['wrong', 'wait', 'unavailable'])

interface SignInFormProps {
  message: string
  problem: string
  /** the name of an earlier attempt */
  name: string
  to: string
}

function SignInForm({ message, problem, name, to }: SignInFormProps) {
  const isWrong = PROBLEMS.has(problem)
  const lacksName = problem === 'name'
  return (
    <form method="post" action="/sign-in/password" className="mt-6 space-y-4">
      <input type="hidden" name="to" value={to} />
      <div>
        <label htmlFor="name" className="mb-1.5 block font-medium">
          Your name
        </label>
        <input
          id="name"
          name="name"
          type="text"
          autoComplete="username"
          defaultValue={name}
          maxLength={40}
          required
          aria-invalid={lacksName || undefined}
          aria-describedby="who"
          className="w-full rounded-md border border-edge bg-surface px-3 py-2 text-base aria-[invalid]:border-bad"
        />
        <p id="who" role={lacksName ? 'alert' : undefined} className={`mt-2 ${lacksName ? 'text-bad' : 'text-soft'}`}>
          1 to 40 characters. The audit log shows it beside what you do.
        </p>
      </div>
      <div>
        <label htmlFor="password" className="mb-1.5 block font-medium">
          Password
        </label>
        <input
          id="password"
          name="password"
          type="password"
          autoComplete="current-password"
          required
          aria-invalid={isWrong || undefined}
          aria-describedby={message === '' ? 'hint' : 'message hint'}
          className="w-full rounded-md border border-edge bg-surface px-3 py-2 text-base aria-[invalid]:border-bad"
        />
        {message !== '' && (
          <p id="message" role={isWrong ? 'alert' : undefined} className={`mt-2 ${isWrong ? 'text-bad' : 'text-soft'}`}>
            {message}
          </p>
        )}
        <p id="hint" className="mt-2 text-soft">
          It is printed when the service starts, unless OPERATOR_PASSWORD sets one.
        </p>
      </div>
      <button
        type="submit"
        className="w-full rounded-md bg-accent px-4 py-2 font-medium text-on-accent transition-colors hover:bg-accent-strong"
      >
        Sign in
      </button>
    </form>
  )
}

function messageOf(problem: string, seconds: string): string {
  if (problem === 'wrong') return 'Wrong password.'
  if (problem === 'wait') {
    const wait = /^\d{1,3}$/.test(seconds) ? `${seconds} s` : 'a moment'
    return `Too many wrong passwords. Try again in ${wait}. If others at your address keep trying, try again anyway: one attempt in ten is accepted. A browser that has signed in before is not affected by them.`
  }
  if (problem === 'unavailable') return 'The database cannot be reached. Try again in a moment.'
  if (problem === 'out') return 'You are signed out.'
  return ''
}

function Closed() {
  return (
    <p className="mt-6 text-soft">
      The dashboard is closed: no password is set. Set <code>OPERATOR_PASSWORD</code> (8 characters or more) and start
      the service again.
    </p>
  )
}
