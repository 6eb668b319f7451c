import type { ReactNode } from 'react'

interface SectionProps {
  id: string
  title: string
  /** such as the number of records, if there are any */
  note?: string | number | false
  /** beside the title */
  beside?: ReactNode
  /** the space around it, if it differs from the usual one */
  className?: string
  children: ReactNode
}

/** A part of a page with its title. */
export function Section({ id, title, note, beside, className = 'mb-8', children }: SectionProps) {
  return (
    <section aria-labelledby={id} className={className}>
      <h2 id={id} className="mb-2 font-semibold">
        {title}
        {Boolean(note) && <span className="ml-2 font-normal text-faint">{note}</span>}
        {beside}
      </h2>
      {children}
    </section>
  )
}
