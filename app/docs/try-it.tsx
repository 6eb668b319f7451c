'use client'

import { type FormEvent, useId, useState, useSyncExternalStore } from 'react'
import { changeConnection, noConnection, readConnection, watchConnection } from './connection-store.ts'
import { type Outcome, type Parameter, sendRequest } from './sending.ts'

interface TryItProps {
  baseUrl: string
  method: string
  path: string
  needsToken: boolean
  parameters: readonly Parameter[]
  /** the example, if the route takes a body */
  body: string | undefined
}

const INPUT = 'w-full rounded-md border border-edge bg-page px-2.5 py-1.5 font-mono text-[0.8125rem]'
const BUTTON = 'rounded-md px-3 py-1.5 font-medium transition-colors disabled:opacity-60'

/** A form that sends a request of the route and shows the answer. */
export function TryIt({ baseUrl, method, path, needsToken, parameters, body }: TryItProps) {
  const connection = useSyncExternalStore<ReturnType<typeof readConnection> | undefined>(
    watchConnection,
    readConnection,
    noConnection,
  )
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const [isSending, setSending] = useState(false)
  const [outcome, setOutcome] = useState<Outcome>()
  if (!connection) return null

  const send = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const fields = new FormData(event.currentTarget)
    setSending(true)
    const request = { method, path, parameters, fields, hasBody: body !== undefined, token: connection.token }
    const found = await sendRequest({ ...request, baseUrl: connection.baseUrl ?? baseUrl })
    // What a sign-in gives is what the other forms are waiting for.
    if (found.session !== undefined) changeConnection({ token: found.session })
    setOutcome(found)
    setSending(false)
  }

  return (
    <div className="rounded-md border border-line">
      <button
        type="button"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center justify-between px-3 py-2 text-left font-medium text-accent -outline-offset-2"
      >
        Try it
        <span aria-hidden="true" className={`text-faint transition-transform ${isOpen ? 'rotate-90' : ''}`}>
          ›
        </span>
      </button>
      <div id={id} hidden={!isOpen} className="border-t border-line p-3">
        <form onSubmit={send} className="space-y-3">
          {needsToken && connection.token === '' && (
            <p className="text-[0.8125rem] text-busy">No Bearer token yet: it goes into the field at the top.</p>
          )}
          {parameters.map(({ name, place, example, isRequired }) => (
            <label key={`${place} ${name}`} className="block">
              <span className="mb-1 block text-xs font-medium text-soft">
                {name} <span className="font-normal text-faint">in the {place}</span>
              </span>
              <input
                className={INPUT}
                name={`${place} ${name}`}
                defaultValue={example}
                required={isRequired}
                spellCheck={false}
              />
            </label>
          ))}
          {body !== undefined && (
            <label className="block">
              <span className="mb-1 block text-xs font-medium text-soft">Body</span>
              <textarea
                className={`${INPUT} field-sizing-content max-h-80 min-h-20`}
                name="body"
                defaultValue={body}
                spellCheck={false}
              />
            </label>
          )}
          <button
            type="submit"
            disabled={isSending}
            className={`${BUTTON} bg-accent text-on-accent hover:bg-accent-strong`}
          >
            {isSending ? 'Sending…' : `Send ${method} ${path}`}
          </button>
        </form>
        <div aria-live="polite">{outcome && <Shown outcome={outcome} />}</div>
      </div>
    </div>
  )
}

function Shown({ outcome: { status, milliseconds, headers, text } }: { outcome: Outcome }) {
  const tone = status === undefined || status >= 400 ? 'text-bad' : 'text-good'
  return (
    <div className="mt-4">
      <p className="text-[0.8125rem] text-soft">
        <span className={`font-mono font-semibold ${tone}`}>{status ?? 'No answer'}</span> in {milliseconds} ms
      </p>
      {headers.map(([name, value]) => (
        <p key={name} className="font-mono text-xs break-all text-soft">
          {name}: {value}
        </p>
      ))}
      <textarea
        aria-label="Body of the answer"
        readOnly
        value={text}
        spellCheck={false}
        className="mt-2 field-sizing-content max-h-96 min-h-10 w-full rounded-md bg-raised px-3 py-2.5 font-mono text-xs leading-relaxed"
      />
    </div>
  )
}
