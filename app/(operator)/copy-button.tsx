/** Copies a value. The frame's `CopyListener` handles the clicks of all copy buttons. Hidden without JavaScript. */
export function CopyButton({ value, label = `Copy ${value}` }: { value: string; label?: string }) {
  return (
    <button type="button" data-copy={value} aria-label={label} className="copy">
      <svg
        width="12"
        height="12"
        viewBox="0 0 12 12"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.2"
        aria-hidden="true"
      >
        <rect x="4" y="4" width="7" height="7" rx="1.5" />
        <path d="M8 4V2.5A1.5 1.5 0 0 0 6.5 1h-4A1.5 1.5 0 0 0 1 2.5v4A1.5 1.5 0 0 0 2.5 8H4" />
      </svg>
    </button>
  )
}

/** A command to run elsewhere, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <span className="inline-flex max-w-full items-center">
      <code className="text-[0.8125rem] [overflow-wrap:anywhere]">{text}</code>
      <CopyButton value={text} />
    </span>
  )
}
