import type { Metadata, Viewport } from 'next'
import type { ReactNode } from 'react'
import './globals.css'

export const metadata: Metadata = {
  title: { default: 'Confidential payroll', template: '%s · Confidential payroll' },
  description:
    'Sessions, fee sponsorship and a payout back office for confidential payroll on the Stellar test network',
}

export const viewport: Viewport = { colorScheme: 'light dark' }

/** The frame of every page. */
export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  )
}
