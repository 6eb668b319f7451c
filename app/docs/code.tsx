/** Text as a machine reads it, under a title. It wraps: a box that scrolls is out of reach without a mouse. */
export function Code({ title, text }: { title: string; text: string }) {
  return (
    <figure className="overflow-hidden rounded-md border border-line bg-raised">
      <figcaption className="border-b border-line px-3 py-1.5 text-xs font-medium text-soft">{title}</figcaption>
      <pre className="px-3 py-2.5 font-mono text-xs leading-relaxed whitespace-pre-wrap [overflow-wrap:anywhere]">
        {text}
      </pre>
    </figure>
  )
}
