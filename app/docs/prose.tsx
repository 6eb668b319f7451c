import { sequence } from './sequence.ts'

/** A text in which backticks mark code. */
export function Prose({ text }: { text: string }) {
  return sequence(text.split(/(`[^`]*`)/), (part) => (part.startsWith('`') ? <code>{part.slice(1, -1)}</code> : part))
}

/** A text whose paragraphs are separated by blank lines. */
export function Paragraphs({ text }: { text: string }) {
  return text.split('\n\n').map((paragraph) => (
    <p key={paragraph} className="mt-3 max-w-prose text-soft">
      <Prose text={paragraph} />
    </p>
  ))
}
