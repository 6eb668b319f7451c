'use client'

import { type FormEvent, useId, useState } from 'react'
import { changeConnection, readConnection } from './connection.ts'
import { ConnectionFields } from './connection-fields.tsx'
import { FIELD, Labelled } from './labelled.tsx'
import { type Outcome, type Parameter, sendRequest } from './sending.ts'
import { Shown } from './shown.tsx'

interface TryItProps {
  baseUrl: string
  method: string
  path: string
  needsToken: boolean
  parameters: readonly Parameter[]
  /** the example, if the route takes a body */
  body: string | undefined
}

/** A form that sends a request of the route and shows the answer. Without JavaScript the page hides it. */
export function TryIt({ baseUrl, method, path, needsToken, parameters, body }: TryItProps) {
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const [isSending, setSending] = useState(false)
  const [outcome, setOutcome] = useState<Outcome>()

  const send = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const fields = new FormData(event.currentTarget)
    const { token, baseUrl: base = baseUrl } = readConnection()
    setSending(true)
    const found = await sendRequest({
      baseUrl: base,
      method,
      path,
      token: needsToken ? token : '',
      parameters,
      fields,
      hasBody: body !== undefined,
    })
    // What a sign-in gives is what the other forms are waiting for.
    if (found.session !== undefined) changeConnection({ token: found.session })
    setOutcome(found)
    setSending(false)
  }

  return (
    <div data-needs-script className="rounded-md border border-line">
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
        {isOpen && (
          <form onSubmit={send} className="space-y-3">
            <ConnectionFields baseUrl={baseUrl} needsToken={needsToken} />
            {parameters.map(({ name, place, example, isRequired }) => (
              <Labelled key={`${place} ${name}`} name={name} note={`in the ${place}`}>
                {(id) => (
                  <input
                    id={id}
                    className={FIELD}
                    name={`${place} ${name}`}
                    defaultValue={example}
                    required={isRequired}
                    spellCheck={false}
                  />
                )}
              </Labelled>
            ))}
            {body !== undefined && (
              <Labelled name="Body">
                {(id) => (
                  <textarea
                    id={id}
                    className={`${FIELD} field-sizing-content max-h-80 min-h-20`}
                    name="body"
                    defaultValue={body}
                    spellCheck={false}
                  />
                )}
              </Labelled>
            )}
            <button
              type="submit"
              disabled={isSending}
              className="rounded-md bg-accent px-3 py-1.5 font-medium text-on-accent transition-colors hover:bg-accent-strong disabled:opacity-60"
            >
              {isSending ? 'Sending…' : 'Send'}
              <span className="sr-only">
                {' '}
                {method} {path}
              </span>
            </button>
          </form>
        )}
        <div aria-live="polite">{outcome && <Shown outcome={outcome} />}</div>
      </div>
    </div>
  )
}
