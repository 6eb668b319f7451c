'use client'

import { type FormEvent, useState } from 'react'
import { BUTTON } from '#app/(operator)/action-form.tsx'
import { curlCommand, requestPath } from '#lib/api/reference/curl.ts'
import { CodeBlock } from './code-block.tsx'
import { useInteractive } from './interactive.ts'
import { useSession } from './session-store.ts'

interface NamedExample {
  name: string
  example: string
}

interface TryItProps {
  method: string
  path: string
  /** the address before the path */
  baseUrl: string
  token: 'session' | 'metrics' | 'scheduler' | undefined
  parameters: readonly NamedExample[]
  query: readonly NamedExample[]
  /** optional ones */
  headers: readonly NamedExample[]
  /** the example; undefined for a request without a body */
  body: string | undefined
}

/** A response, or the reason why there is none. */
type Answer = { title: string; text: string } | undefined

const FIELD = 'w-full rounded-md border border-edge bg-surface px-2.5 py-1.5 font-mono text-[0.8125rem] text-ink'

const examplesOf = (list: readonly NamedExample[]) =>
  Object.fromEntries(list.map(({ name, example }) => [name, example]))

/** A form for the request: the command to copy, and the response when it is sent. Without scripts, only the command. */
export function TryIt(props: TryItProps) {
  const { method, path, baseUrl, token, parameters, query } = props
  const isInteractive = useInteractive()
  const session = useSession()
  const [secret, setSecret] = useState('')
  const [values, setValues] = useState(() => examplesOf(parameters))
  const [search, setSearch] = useState<Record<string, string>>({})
  const [extra, setExtra] = useState<Record<string, string>>({})
  const [body, setBody] = useState(props.body)
  const [answer, setAnswer] = useState<Answer>()
  const [isSending, setSending] = useState(false)

  const bearer = token === undefined ? '' : token === 'session' ? session : secret
  const target = requestPath(path, values, search)
  const shown = token === undefined ? '' : bearer || (token === 'session' ? 'SESSION' : 'TOKEN')
  const command = curlCommand({ method, url: `${baseUrl}${target}`, token: shown, headers: extra, body })

  const send = async (event: FormEvent) => {
    event.preventDefault()
    setSending(true)
    const headers = {
      ...(bearer !== '' && { Authorization: `Bearer ${bearer}` }),
      ...Object.fromEntries(Object.entries(extra).filter(([, value]) => value !== '')),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    }
    const began = performance.now()
    try {
      const response = await fetch(`/api${target}`, { method, headers, ...(body !== undefined && { body }) })
      const text = await response.text()
      const took = Math.round(performance.now() - began)
      setAnswer({ title: `${response.status} ${response.statusText} in ${took} ms`, text: indent(text) })
    } catch (error) {
      setAnswer({ title: 'No response', text: String(error) })
    }
    setSending(false)
  }
  const label = `${method} ${path}`
  if (!isInteractive) return <CodeBlock label={`curl: ${label}`} text={command} />
  return (
    <details className="mt-2">
      <summary className="w-fit leading-6 font-medium">Try it</summary>
      <form onSubmit={send} className="mt-2 space-y-2">
        {token !== undefined && token !== 'session' && (
          <Input label="Token" isSecret value={secret} onChange={setSecret} />
        )}
        {parameters.map(({ name }) => (
          <Input
            key={name}
            label={name}
            value={values[name] ?? ''}
            onChange={(value) => setValues({ ...values, [name]: value })}
          />
        ))}
        {query.map(({ name, example }) => (
          <Input
            key={name}
            label={name}
            placeholder={example}
            value={search[name] ?? ''}
            onChange={(value) => setSearch({ ...search, [name]: value })}
          />
        ))}
        {props.headers.map(({ name, example }) => (
          <Input
            key={name}
            label={name}
            placeholder={example}
            value={extra[name] ?? ''}
            onChange={(value) => setExtra({ ...extra, [name]: value })}
          />
        ))}
        {body !== undefined && (
          <label className="block text-xs text-faint">
            Body
            <textarea
              rows={Math.min(16, body.split('\n').length)}
              spellCheck={false}
              value={body}
              onChange={({ target: { value } }) => setBody(value)}
              className={FIELD}
            />
          </label>
        )}
        <CodeBlock label={`curl: ${label}`} text={command} />
        <button type="submit" disabled={isSending} className={`${BUTTON} disabled:text-faint`}>
          {isSending ? 'Sending …' : 'Send the request'}
        </button>
      </form>
      <div aria-live="polite">
        {answer && (
          <>
            <p className="mt-2 font-medium">{answer.title}</p>
            <CodeBlock label={`The response to ${label}`} text={answer.text} />
          </>
        )}
      </div>
    </details>
  )
}

interface InputProps {
  label: string
  value: string
  placeholder?: string
  isSecret?: boolean
  onChange: (value: string) => void
}

function Input({ label, value, placeholder, isSecret = false, onChange }: InputProps) {
  return (
    <label className="block text-xs text-faint">
      {label}
      <input
        type={isSecret ? 'password' : 'text'}
        autoComplete="off"
        spellCheck={false}
        placeholder={placeholder}
        value={value}
        onChange={({ target }) => onChange(target.value)}
        className={`${FIELD} placeholder:text-faint`}
      />
    </label>
  )
}

/** Indents JSON; other text is returned unchanged. */
function indent(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
