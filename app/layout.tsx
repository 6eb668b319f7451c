import type { Metadata, Viewport } from 'next'
import { connection } from 'next/server'
import type { ReactNode } from 'react'
import './globals.css'

export const metadata: Metadata = {
  title: { default: 'Confidential payroll', template: '%s · Confidential payroll' },
  description:
    'Sessions, fee sponsorship and a payout back office for confidential payroll on the Stellar test network',
}

export const viewport: Viewport = { colorScheme: 'light dark' }

/** The frame of every page. */
export default async function Layout({ children }: { children: ReactNode }) {
  // The policy's nonce differs for each request, so no page can be rendered at build time.
  await connection()
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  )
}
