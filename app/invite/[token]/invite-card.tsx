import type { ReactNode } from 'react'
import { BrandMark } from '#app/brand-mark.tsx'

/** The frame of every page that an invite's link can open. */
export function InviteCard({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="mx-auto flex min-h-dvh max-w-xl flex-col justify-center px-4 py-10 sm:px-6">
      <p className="mb-5 flex items-center gap-2.5 font-medium">
        <BrandMark />
        Confidential payroll
      </p>
      <div className="rounded-xl border border-line bg-surface p-6 shadow-card sm:p-8">
        <h1 className="mb-4 text-2xl leading-tight font-semibold tracking-tight [overflow-wrap:anywhere]">{title}</h1>
        {children}
      </div>
    </main>
  )
}
