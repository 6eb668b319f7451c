/** Text in paragraphs, with `code` in it. */
export function Prose({ text, className = '' }: { text: string; className?: string }) {
  return (
    <div className={`space-y-3 ${className}`}>
      {text.split('\n\n').map((paragraph) => (
        <p key={paragraph}>
          <Inline text={paragraph} />
        </p>
      ))}
    </div>
  )
}

/** A line of text, with `code` in it. */
export function Inline({ text }: { text: string }) {
  // Every other part stands between two backticks.
  const parts = text.split('`').map((part, index) => ({ part, key: `${index} ${part}`, isCode: index % 2 === 1 }))
  return parts.map(({ part, key, isCode }) =>
    isCode ? (
      <code key={key} className="rounded bg-raised px-1 py-px font-mono text-[0.9em] break-words">
        {part}
      </code>
    ) : (
      part
    ),
  )
}
