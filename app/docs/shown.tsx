import type { Outcome } from './sending.ts'

/** What a request was answered with. */
export function Shown({ outcome: { status, milliseconds, headers, text } }: { outcome: Outcome }) {
  const isBad = status === undefined || status >= 400
  return (
    <div className="mt-4">
      <p className="text-[0.8125rem] text-soft">
        <span className={`font-mono font-semibold ${isBad ? 'text-bad' : 'text-good'}`}>{status ?? 'No answer'}</span>{' '}
        in {milliseconds} ms
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
