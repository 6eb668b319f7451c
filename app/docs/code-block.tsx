/** Code that is copied as a whole. Long lines wrap, so that nothing scrolls sideways on a phone. */
export function CodeBlock({ label, text }: { label: string; text: string }) {
  return (
    <figure className="mt-2">
      <figcaption className="flex min-h-6 items-center justify-between gap-4 text-xs text-faint">
        <span className="[overflow-wrap:anywhere]">{label}</span>
        <button
          type="button"
          data-copy={text}
          aria-label={`Copy: ${label}`}
          className="hidden min-h-6 rounded px-1.5 text-soft hover:text-accent data-copied:text-good [[data-copies]_&]:block"
        >
          Copy
        </button>
      </figcaption>
      <pre className="rounded-md border border-line bg-raised px-3 py-2 text-[0.8125rem] leading-relaxed whitespace-pre-wrap [overflow-wrap:anywhere]">
        <code>{text}</code>
      </pre>
    </figure>
  )
}
