import { type ReactNode, useId } from 'react'

/** How every field of a form looks. */
export const FIELD = 'w-full rounded-md border border-edge bg-page px-2.5 py-1.5 font-mono text-[0.8125rem]'

interface LabelledProps {
  name: string
  note?: string
  /** the field, which takes this id */
  children: (id: string) => ReactNode
}

/** A field under its name. */
export function Labelled({ name, note, children }: LabelledProps) {
  const id = useId()
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-xs font-medium text-soft">
        {name} {note && <span className="font-normal text-faint">{note}</span>}
      </label>
      {children(id)}
    </div>
  )
}
