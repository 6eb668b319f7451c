import { redirect } from 'next/navigation'
import { connection } from 'next/server'
import { hasStarted } from '#app/(operator)/require-operator.ts'
import { type Service, service } from '#lib/server/services.ts'

/** The running service. A deployment that lacks a variable shows the home page, which names it. */
export async function startedService(): Promise<Service> {
  await connection()
  if (!(await hasStarted())) redirect('/')
  return await service()
}
