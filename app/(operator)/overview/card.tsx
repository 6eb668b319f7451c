import type { ReactNode } from 'react'

interface CardProps {
  title: string
  figure: ReactNode
  unit?: string
  children?: ReactNode
}

/** One large figure with its label and details. */
export function Card({ title, figure, unit, children }: CardProps) {
  return (
    <section className="flex flex-col rounded-lg border border-line bg-surface p-4 shadow-card sm:p-5">
      <h2 className="text-xs text-faint">{title}</h2>
      <p className="mt-1.5 text-2xl font-semibold tracking-tight">
        {figure}
        {unit && <span className="ml-1.5 text-sm font-normal tracking-normal text-faint">{unit}</span>}
      </p>
      <div className="mt-2 space-y-1 text-[0.8125rem] text-soft">{children}</div>
    </section>
  )
}
